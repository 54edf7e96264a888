// A flow that is to start: what traffic hands to the engines.
#pragma once

#include "model/base/units.hpp"
#include "model/text/scenario.hpp"

namespace dcqcn {

struct FlowStart {
  Time start = 0;
  Bytes bytes = 0;
  int src = 0;
  int dst = 0;
  std::uint32_t workload = 0;
  std::uint32_t messages = 1;
  std::uint8_t priority = 3;
  std::uint16_t connection = 0;  // of those between the two hosts
  std::uint32_t tag = 0;         // what a workload that reacts to arrivals knows the flow by
};

// a flow of `w`, the scenario's workload number `workload`
inline FlowStart flow_of(const WorkloadSpec& w, std::uint32_t workload, const Transfer& t) {
  return {.start = t.start,
          .bytes = t.bytes,
          .src = t.src,
          .dst = t.dst,
          .workload = workload,
          .priority = static_cast<std::uint8_t>(w.priority)};
}

}  // namespace dcqcn
