// SPDX-License-Identifier: GPL-2.0-only
// The files of `dcqcn-gym simulate`, written by the program: flows.csv, intervals.csv,
// collectives.csv, summary.json and timing.json.
#ifndef DCQCN_OUTPUTS_H
#define DCQCN_OUTPUTS_H

#include <array>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "rounds.h"
#include "sim/simulation.hpp"

namespace ns3 {

/// What a compiled scenario says in its lines `#! run`, `#! setting` and `#! collective`.
struct RunInfo {
  std::string name = "scenario";
  std::string version;
  int64_t interval_ps = 1'000'000'000;
  int64_t intervals = 10;
  double weights[3] = {0.2, 0.5, 0.3};  ///< throughput, round trips, pauses
  double active_share = 0.05;
  bool pfc_over_paused = false;
  std::map<std::string, double> setting;  ///< knob name to SI value
  std::vector<Collective> collectives;

  /// Throws std::runtime_error that names the line.
  static RunInfo Parse(const std::string& text);

 private:
  void Set(const std::string& key, const std::string& value);
  void SetCollective(const std::string& key, const std::string& value);
};

/// Collects interval reports and writes them. Throws std::runtime_error if a file cannot be
/// written.
class Outputs {
 public:
  Outputs(const std::string& folder, const RunInfo& info, const ::dcqcn::Simulation& simulation);
  void Add(const ::dcqcn::IntervalData& data);
  void Finish(uint64_t seed, const std::vector<double>& setting_si, double wall_s);

 private:
  struct SizeBin {
    const char* key;
    int64_t low, high;
    std::vector<int64_t> classes;
    int64_t count = 0;
    double sum = 0, largest = 0;
  };
  struct Judged {
    double tp = 1, rtt = 1, pfc = 1, utility = 1;
    bool idle = false;
  };
  Judged Judge(const ::dcqcn::IntervalData& data) const;
  std::vector<double> DevicePauses(const ::dcqcn::IntervalData& data) const;
  void CountSlowdown(int64_t bytes, double slowdown);
  std::string Slowdowns() const;
  std::ofstream Open(const std::string& name) const;

  std::string m_folder;
  RunInfo m_info;
  const ::dcqcn::Simulation& m_simulation;
  std::ofstream m_flows, m_intervals, m_collectives;
  Rounds m_rounds;
  ::dcqcn::Totals m_totals;
  std::vector<SizeBin> m_bins;
  int64_t m_count = 0, m_end = 0, m_finished = 0, m_busy = 0;
  int64_t m_firstStart = -1, m_lastFinish = 0, m_largestQueue = 0;
  uint64_t m_active = 0;
  double m_utility = 0, m_portPause = 0, m_devicePause = 0, m_hostPause = 0, m_switchPause = 0;
  uint64_t m_hostPfc = 0, m_switchPfc = 0;
};

/// A double as Python prints it: the shortest digits that give the number back.
std::string Repr(double value);
/// Picoseconds as exact decimal nanoseconds.
std::string Nanoseconds(int64_t ps);

}  // namespace ns3
#endif
