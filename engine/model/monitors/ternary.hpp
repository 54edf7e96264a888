// Ternary states over a window (PARALEON, ICNP 2024, section III-B, keypoint 2) on any counter.
#pragma once

#include "model/monitors/kind.hpp"

namespace dcqcn::monitors {

template <class CounterType>
class Ternary : public Counting<CounterType, FlowStates> {
 public:
  Ternary(const auto& options, const Place& place)
      : Counting<CounterType, FlowStates>(options, place, FlowStates(options.states())) {}

  void end_interval(Time now, FsdReport& out, Verdicts& verdicts) {
    this->tors_.for_each([&](int tor, auto& t) {
      LocalFsd local = local_of(tor);
      verdicts.begin(tor);
      t.counter.read_and_reset([&](std::uint32_t key, std::uint64_t bytes) {
        count(local, verdicts, key, t.more.observe(key, bytes, now));
      });
      local.untracked = static_cast<std::uint32_t>(t.more.untracked());
      t.more.end_interval();
      out.add(local);
      out.monitor_bytes += sizeof(LocalFsd);
    });
  }

  void report_cost(FsdReport& out) const {
    this->tors_.for_each([&](int, const auto& t) {
      out.data_plane_bytes += t.counter.memory_bytes();
      out.control_plane_bytes += static_cast<std::int64_t>(t.more.peak_bytes());
      out.tracked_flows += static_cast<std::int64_t>(t.more.tracked());
      out.untracked_flows += static_cast<std::int64_t>(t.more.untracked());
    });
  }
};

}  // namespace dcqcn::monitors
