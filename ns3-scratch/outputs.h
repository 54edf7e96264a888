// SPDX-License-Identifier: GPL-2.0-only
// What the program writes: raw interval reports (reports.jsonl), flows (flows.csv), and how they
// came about (run.json). Everything else follows from them: `dcqcn-gym simulate --reports FOLDER`.
#ifndef DCQCN_OUTPUTS_H
#define DCQCN_OUTPUTS_H

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "sim/simulation.hpp"

namespace ns3 {

/// What a compiled scenario says in its lines `#! run` and `#! setting`.
struct RunInfo {
  std::string name = "scenario";
  int64_t interval_ps = 1'000'000'000;
  int64_t intervals = 10;
  std::map<std::string, double> setting;  ///< knob name to SI value

  /// Throws std::runtime_error that names the line.
  static RunInfo Parse(const std::string& text);

 private:
  void Set(const std::string& key, const std::string& value);
};

/// How the reports came about.
struct RunDone {
  std::string name;
  std::string scheme;  ///< of the NICs; several with commas
  uint64_t seed = 0;
  std::vector<std::pair<std::string, double>> setting_si;  ///< the knobs in force, by name
};

/// Writes interval reports as they come. Throws std::runtime_error if a file cannot be written.
class Outputs {
 public:
  Outputs(const std::string& folder, const ::dcqcn::Simulation& simulation);
  void Add(const ::dcqcn::IntervalData& data);
  void Finish(const RunDone& done, double wall_s);

 private:
  std::ofstream Open(const std::string& name) const;
  void AddFlows(const ::dcqcn::IntervalData& data);

  std::string m_folder;
  const ::dcqcn::Simulation& m_simulation;
  std::ofstream m_reports, m_flows;
};

}  // namespace ns3
#endif
