// The state of a window engine between two windows; what is scratch inside one is `built`.
#include "sim/window_engine.hpp"

namespace dcqcn {

void WindowEngine::Port::visit(Archive& a) {
  a.all<Port>(busy, wire, control, backlog, last_served, built(peer_node), pfc, pfc_wire,
              built(ps_per_byte), pause, built(delay), queued_total, queued, data, ecn, draws,
              counters, deficits);
}

void WindowEngine::Switch::visit(Archive& a) {
  a.all<Switch>(built(ports), built(degree), built(from), built(from_host), buffer,
                paused_ingresses, built(apart), built(window_bytes));
}

void WindowEngine::Nic::visit(Archive& a) {
  a.all<Nic>(built(port), built(from), qps, places, ready, waiting, rtos, ready_count, last_served,
             starts, chained, delayed_cnps);
}

void WindowEngine::visit(Archive& a) {
  a.all<WindowEngine>(
      BuiltPointer{}, built(world_), built(window_), built(lead_), built(host_window_), now_,
      built(max_packet_), built(priorities_), built(priority_), built(one_priority_),
      built(weighted_), built(control_waits_), built(in_class_), ports_, switches_, nics_, wakes_,
      built(flows_), built(switches_of_), built(lanes_), built(crew_), built(least_awake_));
}

}  // namespace dcqcn
