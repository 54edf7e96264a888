// What an engine tells of its egress ports. One text for every engine whose ports keep their state
// under these names: queued_total, counters, paused (a bit per priority), paused_since, pause_sum.
#pragma once

#include <algorithm>

#include "sim/engine.hpp"

namespace dcqcn {

// lossless priorities, over which a port's pause time is averaged
inline int lossless_count(const Scenario& scenario) {
  return std::max(1, __builtin_popcount(scenario.pfc.lossless));
}

template <typename Port>
Time paused_so_far(const Port& port, Time now) {
  Time pause = 0;
  for (unsigned p = 0; p < 8; ++p) {
    pause += port.pause_sum[p];
    if (port.paused >> p & 1) pause += now - port.paused_since[p];
  }
  return pause;
}

template <typename Port>
PortSample sample_of(const Port& port, const Scenario& scenario, Time now) {
  const double pause = static_cast<double>(paused_so_far(port, now)) / lossless_count(scenario);
  return {port.queued_total, port.counters.tx_bytes, pause, port.paused != 0};
}

// the interval's figures; the next interval begins
template <typename Port>
PortReport take_report(Port& port, const Scenario& scenario, Time now) {
  const double pause = static_cast<double>(paused_so_far(port, now)) / lossless_count(scenario);
  const PortReport report{port.counters, port.queued_total, pause};
  for (unsigned p = 0; p < 8; ++p) {
    port.pause_sum[p] = 0;
    if (port.paused >> p & 1) port.paused_since[p] = now;
  }
  port.counters = {};
  port.counters.max_queue = port.queued_total;
  return report;
}

}  // namespace dcqcn
