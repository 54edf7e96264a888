// No distribution: packets are not looked at.
#pragma once

#include "model/monitors/kind.hpp"

namespace dcqcn::monitors {

class None {
 public:
  static constexpr const char* kName = "none";
  static constexpr bool kWantsPackets = false;
  static constexpr bool kTakesRuns = false;
  using Options = CommonOptions;
  static Fields<Options> fields() { return {}; }

  None(const Options&, const Place&) {}

  bool counts_packets() const { return false; }
  void record(int, std::uint32_t, std::uint32_t) {}
  bool record_runs(int, std::vector<FlowRun>&) { return false; }
  void end_interval(Time, FsdReport& out, Verdicts&) { out.known = false; }
  void report_cost(FsdReport&) const {}
  void visit(Archive&) {}
};

}  // namespace dcqcn::monitors
