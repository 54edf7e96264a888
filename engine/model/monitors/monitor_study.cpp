#include "model/monitors/monitor_study.hpp"

namespace dcqcn {

void MonitorStudy::note(int tor, std::uint32_t flow_key, std::uint32_t payload_bytes) {
  if (trace_wanted_) {
    trace_.push_back(
        {flow_key, static_cast<std::uint16_t>(tor), static_cast<std::uint16_t>(payload_bytes)});
  }
  if (truth_.empty()) return;
  Truth& t = truth_[static_cast<std::size_t>(tor)];
  t.now[flow_key] += payload_bytes;
  t.ever[flow_key] += payload_bytes;
}

void MonitorStudy::end_interval(const monitors::Verdicts& verdicts) {
  labels_.clear();
  for (std::size_t tor = 0; tor < truth_.size(); ++tor) {
    Truth& t = truth_[tor];
    t.now.for_each([&](std::uint32_t key, std::uint64_t bytes) {
      FlowLabel label{.key = key, .tor = static_cast<std::uint32_t>(tor), .interval_bytes = bytes};
      label.total_bytes = *t.ever.find(key);
      if (const auto* seen = verdicts.find(tor, key); seen != nullptr) {
        label.seen_bytes = seen->phi;
        label.elephant_share = seen->elephant_share;
        label.state = seen->state;
      }
      labels_.push_back(label);
    });
    t.now.clear();
  }
}

}  // namespace dcqcn
