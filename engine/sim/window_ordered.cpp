// Switches of the window engine while PFC may fire: arrivals, dequeues and pauses of the whole
// switch in strict (time, kind, port) order, because every one of them may move a threshold.
#include <algorithm>
#include <bit>

#include "model/fabric/ecn.hpp"
#include "sim/window_engine.hpp"

namespace dcqcn {

// One window of one switch. Every port has at most one pending dequeue; a tournament over the
// ports gives the next one.
struct WindowEngine::OrderedWindow {
  Lane& lane;
  std::uint32_t s;
  Switch& sw;
  int node;
  Time begin;
  Time end;
  std::uint64_t* tree;   // [1] the next dequeue, [leaves + port] that of the port
  std::uint32_t leaves;  // a power of two

  static constexpr std::uint64_t kIdle = ~0ull;
  std::uint64_t key(const Port& port, Time when) const {
    return static_cast<std::uint64_t>(when - begin) << ArrivalKey::kPortBits |
           static_cast<std::uint64_t>(&port - sw.ports);
  }
  void set(std::uint32_t port, std::uint64_t value) {
    std::uint32_t at = leaves + port;
    tree[at] = value;
    while (at > 1) {
      const std::uint64_t other = tree[at ^ 1];
      value = value < other ? value : other;
      at >>= 1;
      tree[at] = value;
    }
  }
  void idle(const Port& port) { set(static_cast<std::uint32_t>(&port - sw.ports), kIdle); }
  void schedule(const Port& port, Time when) {
    const std::uint64_t k = key(port, std::max(when, port.busy));
    const std::uint32_t index = static_cast<std::uint32_t>(&port - sw.ports);
    if (k < tree[leaves + index]) set(index, k);
  }
  // instead of what was pending
  void reschedule(const Port& port) {
    set(static_cast<std::uint32_t>(&port - sw.ports),
        port.eligible() ? key(port, port.busy) : kIdle);
  }
  Time next_dequeue() const {
    return tree[1] == kIdle ? kNever : begin + static_cast<Time>(tree[1] >> ArrivalKey::kPortBits);
  }
  Port& next_port() const { return sw.ports[tree[1] & ((1u << ArrivalKey::kPortBits) - 1)]; }
};

void WindowEngine::run_switch_ordered(Lane& lane, std::uint32_t s, Time begin, Time end) {
  Switch& sw = switches_[s];
  const std::uint32_t leaves = std::bit_ceil(std::max(sw.degree, 2u));
  lane.tournament.assign(2 * std::size_t{leaves}, OrderedWindow::kIdle);
  const int node = world_.topology.hosts() + static_cast<int>(s);
  OrderedWindow w{lane, s, sw, node, begin, end, lane.tournament.data(), leaves};
  RunList& arrivals = lane.by_egress[0];
  std::uint32_t taken[1u << ArrivalKey::kPortBits];
  Time pause_next = gather_ordered(w, arrivals, taken);
  const std::uint64_t* next = arrivals.sorted(lane.scratch);
  const std::uint64_t* const last = next + arrivals.size();
  while (true) {
    run_ordered_until(w, next, last, std::min(pause_next, end));
    if (pause_next >= end) break;
    pause_next = take_pauses(w, pause_next);
  }
  Time wake = pause_next;
  for (std::uint32_t p = 0; p < sw.degree; ++p) {
    Ring<Packet>& in = sw.from[p]->wire;
    in.drop(taken[p]);
    if (!in.empty()) wake = std::min(wake, in.front().arrival);
    const Port& port = sw.ports[p];
    if (port.eligible()) wake = std::min(wake, port.busy);
    if (!port.wire.empty()) update_wake(port.peer_node, port.wire.front().arrival);
    if (!port.pfc_wire.empty()) update_wake(port.peer_node, port.pfc_wire.front().arrival);
  }
  wakes_[static_cast<std::size_t>(node)] = wake;
}

// lists what arrives in the window, how many at each port, and schedules the ports that may send;
// returns when the first pause frame arrives
Time WindowEngine::gather_ordered(OrderedWindow& w, RunList& arrivals, std::uint32_t* taken) {
  arrivals.clear();
  Time pause_next = kNever;
  for (std::uint32_t p = 0; p < w.sw.degree; ++p) {
    const Ring<Packet>& in = w.sw.from[p]->wire;
    const std::uint32_t n = in.size();
    std::uint32_t i = 0;
    for (; i < n && in[i].arrival < w.end; ++i) {
      arrivals.add_to_run(
          p, ArrivalKey::make(static_cast<std::uint64_t>(in[i].arrival - w.begin), p, i));
    }
    taken[p] = i;
    w.lane.totals.hops += i;
    const Port& port = w.sw.ports[p];
    if (port.eligible()) w.schedule(port, w.begin);
    if (!w.sw.from[p]->pfc_wire.empty()) {
      pause_next = std::min(pause_next, w.sw.from[p]->pfc_wire.front().arrival);
    }
  }
  return pause_next;
}

// dequeues and arrivals before `until`, dequeues first at the same instant
void WindowEngine::run_ordered_until(OrderedWindow& w, const std::uint64_t*& next,
                                     const std::uint64_t* last, Time until) {
  while (true) {
    const Time arrival = next < last ? w.begin + ArrivalKey::offset(*next) : kNever;
    const Time dequeue = w.next_dequeue();
    if (dequeue <= arrival) {
      if (dequeue >= until) return;
      service<false>(w, w.next_port(), dequeue);
    } else {
      if (arrival >= until) return;
      const std::uint32_t in_port = ArrivalKey::port(*next);
      const Packet& in = w.sw.from[in_port]->wire[ArrivalKey::place(*next)];
      ++next;
      if (next + 3 < last) {  // the packets lie scattered over the links
        w.sw.from[ArrivalKey::port(next[3])]->wire.prefetch_front(ArrivalKey::place(next[3]));
      }
      ordered_arrival(w, in, in_port, arrival);
    }
  }
}

// PFC frames that arrive now, by port; returns when the next one comes
Time WindowEngine::take_pauses(OrderedWindow& w, Time now) {
  Time next = kNever;
  for (std::uint32_t p = 0; p < w.sw.degree; ++p) {
    Ring<PfcFrame>& frames = w.sw.from[p]->pfc_wire;
    if (!frames.empty() && frames.front().arrival == now) {
      Port& port = w.sw.ports[p];
      port.take(frames.pop(), now);
      if (port.eligible()) w.schedule(port, now);
    }
    if (!frames.empty()) next = std::min(next, frames.front().arrival);
  }
  return next;
}

inline void WindowEngine::ordered_arrival(OrderedWindow& w, const Packet& in, std::uint32_t in_port,
                                          Time now) {
  Port& out = w.sw.ports[world_.topology.route(w.node, in.dst, in.entropy)];
  if (!waits_in_class(in)) {
    out.control.push(in);
    kick(w, out, now);
    return;
  }
  const unsigned priority = static_cast<unsigned>(in.priority);
  if (in.is_data() && w.sw.from_host[in_port] && !in.retransmit && world_.monitor.wants_packets()) {
    world_.monitor.record(
        static_cast<int>(w.s), world_.transport.flow_key(in.qp),
        static_cast<std::uint32_t>(in.bytes - world_.scenario.wire.data_overhead));
  }
  SharedBuffer& shared = w.sw.buffer;
  if (!shared.admit(in_port, priority, in.bytes, world_.scenario.pfc.may_drop(in))) {
    ++out.counters.dropped;
    ++w.lane.totals.drops;
    return;
  }
  Packet& p = out.data[priority].push_slot();
  p = in;
  out.data[priority].prefetch_end(2);
  p.in_port = static_cast<std::uint16_t>(in_port);
  out.queued[priority] += in.bytes;
  out.queued_total += in.bytes;
  out.backlog |= static_cast<std::uint8_t>(1u << priority);
  if (shared.should_pause(in_port, priority)) {
    shared.ingress(in_port, priority).paused = true;
    ++w.sw.paused_ingresses;
    send_pfc(w, in_port, priority, true, now);
  }
  kick(w, out, now);
  out.counters.max_queue = std::max(out.counters.max_queue, out.queued_total);
}

inline void WindowEngine::kick(OrderedWindow& w, Port& port, Time now) {
  if (port.busy <= now) {
    service<true>(w, port, now);
  } else {
    w.schedule(port, port.busy);
  }
}

[[gnu::noinline]] unsigned WindowEngine::weighted_turn(Port& port, unsigned last,
                                                       unsigned ready) const {
  const unsigned priority =
      port.deficits.pick(ready, last, world_.scenario.classes, max_packet_,
                         [&](unsigned p) { return Bytes{port.data[p].front().bytes}; });
  Ring<Packet>& queue = port.data[priority];
  port.deficits.sent(priority, queue.front().bytes, queue.size() == 1);
  return priority;
}

// start the next frame of a free port: PFC, then ACK and CNP, then data; `kicked`: not by the
// port's pending dequeue, which stays if there is nothing to start
template <bool kicked>
void WindowEngine::service(OrderedWindow& w, Port& port, Time now) {
  if (!port.pfc.empty()) {
    PfcFrame frame = port.pfc.pop();
    port.busy = now + world_.scenario.wire.pfc * port.ps_per_byte;
    frame.arrival = port.busy + port.delay;
    port.pfc_wire.push(frame);
  } else if (!port.control.empty()) {
    transmit(port, port.control.front(), now);
    port.control.drop();
  } else {
    const unsigned ready = port.ready();
    if (!ready) {
      if (!kicked) w.idle(port);
      return;
    }
    const unsigned priority = take_turn(port, port.last_served, ready);
    port.last_served = static_cast<std::uint8_t>(priority);
    transmit_data(w, port, priority, now);
  }
  w.reschedule(port);
}

inline void WindowEngine::transmit_data(OrderedWindow& w, Port& port, unsigned priority, Time now) {
  Ring<Packet>& queue = port.data[priority];
  Packet& p = port.wire.push_slot();
  p = queue.front();
  queue.drop();
  queue.prefetch_front(1);
  port.wire.prefetch_end(2);
  port.busy = now + p.bytes * port.ps_per_byte;
  p.arrival = port.busy + port.delay;
  if (queue.empty()) port.backlog &= static_cast<std::uint8_t>(~(1u << priority));
  port.queued[priority] -= p.bytes;
  port.queued_total -= p.bytes;
  mark_departing(port, world_.scenario.classes.curve(priority, port.ecn), p, port.queued[priority],
                 w.lane.totals);
  port.counters.tx_bytes += p.bytes;
  ++port.counters.tx_packets;
  SharedBuffer& shared = w.sw.buffer;
  const std::uint32_t in_port = p.in_port;
  shared.release(in_port, priority, p.bytes);
  if (shared.should_resume(in_port, priority)) {
    shared.ingress(in_port, priority).paused = false;
    --w.sw.paused_ingresses;
    send_pfc(w, in_port, priority, false, now);
  }
}

[[gnu::noinline]] void WindowEngine::send_pfc(OrderedWindow& w, std::uint32_t in_port,
                                              unsigned priority, bool pause, Time now) {
  Port& back = w.sw.ports[in_port];
  back.pfc.push({0, static_cast<std::uint8_t>(priority), pause});
  ++back.counters.pfc_sent;
  ++(pause ? w.lane.totals.pauses : w.lane.totals.resumes);
  kick(w, back, now);
}

}  // namespace dcqcn
