// What a ToR saw of one flow without another flow's packet between, at one of its ports.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace dcqcn {

struct FlowRun {
  std::uint64_t order = 0;   // of its first packet among all that the ToR received
  std::uint32_t key = 0;     // of the flow
  std::uint32_t weight = 0;  // bytes or packets, whatever is counted
  std::uint32_t place = 0;   // for the counter's own use
};

/// Runs are collected port by port, but a counter has to meet new flows in the order of arrival.
inline void sort_by_arrival(std::vector<FlowRun>& runs) {
  std::sort(runs.begin(), runs.end(),
            [](const FlowRun& a, const FlowRun& b) { return a.order < b.order; });
}

}  // namespace dcqcn
