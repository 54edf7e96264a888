// The truth beside a monitor, for studies of its accuracy: exact counts of every flow, and the
// packets themselves.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "model/base/archive.hpp"
#include "model/flows/flow_table.hpp"
#include "model/monitors/flow_states.hpp"
#include "model/monitors/verdicts.hpp"

namespace dcqcn {

/// One flow that was active in the last interval, as counted exactly and as the monitor saw it.
struct FlowLabel {
  std::uint32_t key = 0;
  std::uint32_t tor = 0;
  std::uint64_t interval_bytes = 0;      // true
  std::uint64_t total_bytes = 0;         // true, since its first packet
  std::uint64_t seen_bytes = 0;          // bytes so far according to the monitor
  double elephant_share = 0.0;           // according to the monitor, in 0..1
  FlowState state = FlowState::kUnseen;  // according to the monitor
};

/// One recorded packet of a trace.
struct TracedPacket {
  std::uint32_t key = 0;
  std::uint16_t tor = 0;
  std::uint16_t payload_bytes = 0;
};

class MonitorStudy {
 public:
  /// `labels`: keep the truth and list every flow; `trace`: keep packets until they are taken.
  MonitorStudy(bool labels, bool trace, int switches)
      : trace_wanted_(trace), truth_(static_cast<std::size_t>(labels ? switches : 0)) {}

  void note(int tor, std::uint32_t flow_key, std::uint32_t payload_bytes);
  void end_interval(const monitors::Verdicts& verdicts);

  const std::vector<FlowLabel>& labels() const { return labels_; }
  std::vector<TracedPacket> take_trace() { return std::exchange(trace_, {}); }

  void visit(Archive& a) { a.all<MonitorStudy>(built(trace_wanted_), truth_, labels_, trace_); }

 private:
  struct Truth {
    FlowTable<std::uint64_t> now, ever;

    void visit(Archive& a) { a.all<Truth>(now, ever); }
  };

  bool trace_wanted_;
  std::vector<Truth> truth_;  // of each ToR; empty: not wanted
  std::vector<FlowLabel> labels_;
  std::vector<TracedPacket> trace_;
};

}  // namespace dcqcn
