// A job: a compiled scenario and a script of what is done to it, as one text, so that a failure
// can be kept as a file. After the scenario's `end` come, one a line:
//
//   seed N                 of the simulation (first line of the script)
//   nic H|* v1 ... v17     SI values of one host or of all, in the order of the table
//   ecn P|* kmin kmax pmax the same for one port or all
//   alpha P|* value        PFC alpha of one port or all; 0: that of the scenario
//   apply                  put the rows into force
//   run T                  advance to T picoseconds
//   report                 close the interval; here the engines are compared
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/simulation.hpp"

namespace dcqcn::fuzz {

struct Job {
  std::vector<std::string> scenario;  // lines, the last one is "end"
  std::vector<std::string> script;

  std::string compiled() const;
  std::string text() const;
  static Job parse(const std::string& text);  // throws std::invalid_argument
};

// One engine that plays a job line by line.
class Player {
 public:
  // splits: this many additional calls of advance per `run`, each going on with a copy
  Player(const Job& job, const std::string& engine, int splits = 0, std::size_t threads = 1);
  // true after a `report`; then report() holds it
  bool play(const std::string& line);
  const IntervalData& report() const { return *report_; }
  Simulation& simulation() { return *simulation_; }

 private:
  void run(Time until);

  std::unique_ptr<Simulation> simulation_;
  std::vector<double> nics_;  // rows of the knobs of the NICs' schemes
  std::vector<EcnSetting> ecns_;
  const IntervalData* report_ = nullptr;
  int splits_;
};

struct Verdict {
  std::string difference;    // "" if all engines agree
  std::uint64_t digest = 0;  // of all reports of the first engine
  std::uint64_t hops = 0;
  std::uint64_t pauses = 0;
  std::uint64_t drops = 0;
};

// the same job on the window engine, on the oracle, and on the window engine with smaller windows;
// the latter two with more calls of advance, after each of which a copy goes on
Verdict compare(const Job& job);
// the window engine alone
Verdict digest(const Job& job, const std::string& engine = "window", std::size_t threads = 1);
// the window engine in one thread and in 2, 3 and 8, with bounded windows too
Verdict compare_threads(const Job& job);

// a smaller job that still fails; at most `attempts` jobs are tried
Job shrink(const Job& job, Verdict (*judge)(const Job&) = compare, int attempts = 2000);

}  // namespace dcqcn::fuzz
