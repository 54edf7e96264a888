// What engines with one heap of events share: the order of time, jobs that become due.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/engine.hpp"

namespace dcqcn {

// Handles events and starts flows up to `until`. Flow starts come last within a picosecond, so
// events at the same instant go first.
template <typename Events, typename Start, typename Handle>
void run_in_order(FlowSource& source, Events& events, std::vector<FlowStart>& starts, Time until,
                  Start&& start_flow, Handle&& handle) {
  while (true) {
    const Time flow = source.next_time();
    const Time event = events.empty() ? kNever : events.top().when;
    if (std::min(flow, event) >= until) return;
    if (flow < event) {
      starts.clear();
      source.take_until(flow + 1, starts);
      for (const FlowStart& f : starts) start_flow(f, flow);
      continue;
    }
    const auto e = events.top();
    events.pop();
    handle(e);
  }
}

// An event for every host whose job has something due before what is `pending` there.
template <typename Pending, typename Schedule>
void arm_woken(Jobs& jobs, Pending&& pending, Schedule&& schedule) {
  for (const int host : jobs.woken()) {
    Time& next = pending(static_cast<std::size_t>(host));
    if (jobs.due(host) >= next) continue;
    next = jobs.due(host);
    schedule(host, next);
  }
  jobs.woken().clear();
}

}  // namespace dcqcn
