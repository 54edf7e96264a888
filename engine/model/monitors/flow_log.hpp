// The flow log: what every ToR saw of every flow in the interval, for a monitor that is written in
// Python. It makes no distribution itself.
#pragma once

#include <vector>

#include "model/monitors/kind.hpp"

namespace dcqcn::monitors {

/// One flow at one ToR in one interval.
struct FlowLogRow {
  std::uint32_t tor = 0;
  std::uint32_t key = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t packets = 0;
};

class FlowLog {
 public:
  static constexpr const char* kName = "flow-log";
  static constexpr bool kWantsPackets = true;
  static constexpr bool kTakesRuns = false;  // a run's weight is bytes or packets, not both
  using Options = CommonOptions;
  static Fields<Options> fields() { return {}; }

  FlowLog(const Options&, const Place& place) : tors_(place.switches) {}

  bool counts_packets() const { return false; }
  void record(int tor, std::uint32_t key, std::uint32_t payload_bytes) {
    Count& count = tors_.at(tor, [] { return FlowTable<Count>(); })[key];
    count.payload_bytes += payload_bytes;
    ++count.packets;
  }
  bool record_runs(int, std::vector<FlowRun>&) { return false; }

  void end_interval(Time, FsdReport& out, Verdicts&) {
    rows_.clear();
    tors_.for_each([&](int tor, FlowTable<Count>& table) {
      table.for_each([&](std::uint32_t key, const Count& count) {
        rows_.push_back({static_cast<std::uint32_t>(tor), key, count.payload_bytes, count.packets});
      });
      table.clear();
    });
    out.known = false;
  }
  void report_cost(FsdReport&) const {}

  /// Of the last interval: by ToR, then in the order of each flow's first packet.
  const std::vector<FlowLogRow>& rows() const { return rows_; }

  void visit(Archive& a) { a.all<FlowLog>(tors_, rows_); }

 private:
  struct Count {
    std::uint64_t payload_bytes = 0;
    std::uint64_t packets = 0;
  };
  PerTor<FlowTable<Count>> tors_;
  std::vector<FlowLogRow> rows_;
};

}  // namespace dcqcn::monitors
