// Switches of the window engine while PFC may fire: arrivals, dequeues and pauses of the whole
// switch in strict (time, kind, port) order, because every one of them may move a threshold.
#include <algorithm>

#include "model/ecn.hpp"
#include "sim/window_engine.hpp"

namespace dcqcn {

struct WindowEngine::OrderedWindow {
  std::uint32_t s;
  Switch& sw;
  int node;
  Time begin;
  Time end;
  std::vector<std::uint64_t>& heap;  // pending dequeues: (time - begin) << 12 | port

  void schedule(Port& port, Time when) {
    when = std::max(when, port.busy);
    if (when >= port.wake) return;
    port.wake = when;
    if (when >= end) return;  // a later window finds it by its backlog
    heap.push_back(static_cast<std::uint64_t>(when - begin) << ArrivalKey::kPortBits |
                   static_cast<std::uint64_t>(&port - sw.ports));
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  }
  Time next_dequeue() const {
    return heap.empty() ? kNever
                        : begin + static_cast<Time>(heap.front() >> ArrivalKey::kPortBits);
  }
  Port& pop_dequeue() {
    const std::uint64_t key = heap.front();
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    heap.pop_back();
    return sw.ports[key & ((1u << ArrivalKey::kPortBits) - 1)];
  }
};

void WindowEngine::run_switch_ordered(std::uint32_t s, Time begin, Time end) {
  Switch& sw = switches_[s];
  dequeues_.clear();
  OrderedWindow w{s, sw, world_.topology.hosts() + static_cast<int>(s), begin, end, dequeues_};
  RunList& arrivals = by_egress_[0];
  arrivals.clear();
  std::uint32_t taken[1u << ArrivalKey::kPortBits];
  Time pause_next = kNever;
  for (std::uint32_t p = 0; p < sw.degree; ++p) {
    const Ring<Packet>& in = sw.from[p]->wire;
    const std::uint32_t n = in.size();
    std::uint32_t i = 0;
    for (; i < n && in[i].arrival < end; ++i) {
      arrivals.add_to_run(p, ArrivalKey::make(static_cast<std::uint64_t>(in[i].arrival - begin), p, i));
    }
    taken[p] = i;
    world_.log.totals.hops += i;
    Port& port = sw.ports[p];
    port.wake = kNever;
    if (port.eligible()) w.schedule(port, begin);
    if (!sw.from[p]->pfc_wire.empty()) {
      pause_next = std::min(pause_next, sw.from[p]->pfc_wire.front().arrival);
    }
  }
  const std::uint64_t* keys = arrivals.sorted(scratch_);
  std::uint32_t i = 0;
  while (true) {
    const Time arrival = i < arrivals.size() ? begin + ArrivalKey::offset(keys[i]) : kNever;
    const Time dequeue = w.next_dequeue();
    const Time now = std::min({pause_next, dequeue, arrival});
    if (now >= end) break;
    if (pause_next == now) {
      pause_next = kNever;
      for (std::uint32_t p = 0; p < sw.degree; ++p) {
        Ring<PfcFrame>& frames = sw.from[p]->pfc_wire;
        if (!frames.empty() && frames.front().arrival == now) switch_pfc(w, sw.ports[p], frames.pop(), now);
        if (!frames.empty()) pause_next = std::min(pause_next, frames.front().arrival);
      }
    } else if (dequeue == now) {
      Port& port = w.pop_dequeue();
      if (port.wake == now) {
        port.wake = kNever;
        service(w, port, now);
      }
    } else {
      const std::uint32_t in_port = ArrivalKey::port(keys[i]);
      ordered_arrival(w, sw.from[in_port]->wire[ArrivalKey::place(keys[i])], in_port, now);
      ++i;
    }
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
  wakes_[static_cast<std::size_t>(w.node)] = wake;
}

void WindowEngine::ordered_arrival(OrderedWindow& w, const Packet& in, std::uint32_t in_port,
                                   Time now) {
  Port& out = w.sw.ports[world_.topology.route(w.node, in.dst, in.entropy)];
  if (!in.is_data()) {
    out.control.push(in);
    kick(w, out, now);
    return;
  }
  const unsigned priority = static_cast<unsigned>(in.priority);
  if (w.sw.from_host[in_port] && !in.retransmit && world_.monitor.wants_packets()) {
    world_.monitor.record(
        static_cast<int>(w.s), world_.transport.flow_key(in.qp),
        static_cast<std::uint32_t>(in.bytes - world_.scenario.wire.data_overhead));
  }
  SharedBuffer& shared = w.sw.buffer;
  if (!shared.admit(in_port, priority, in.bytes)) {
    ++out.counters.dropped;
    ++world_.log.totals.drops;
    return;
  }
  Packet& p = out.data[priority].push_slot();
  p = in;
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

void WindowEngine::kick(OrderedWindow& w, Port& port, Time now) {
  if (port.busy <= now) {
    service(w, port, now);
  } else {
    w.schedule(port, port.busy);
  }
}

// start the next frame of a free port: PFC, then ACK and CNP, then data
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
    const unsigned ready = port.backlog & static_cast<std::uint8_t>(~port.paused);
    if (!ready) return;
    unsigned priority = (port.last_served + 1) & 7;
    while (!(ready >> priority & 1)) priority = (priority + 1) & 7;
    port.last_served = priority;
    transmit_data(w, port, priority, now);
  }
  port.wake = kNever;  // a dequeue that was pending for an earlier instant is void
  if (port.eligible()) w.schedule(port, port.busy);
}

void WindowEngine::transmit_data(OrderedWindow& w, Port& port, unsigned priority, Time now) {
  Ring<Packet>& queue = port.data[priority];
  Packet p = queue.pop();
  if (queue.empty()) port.backlog &= static_cast<std::uint8_t>(~(1u << priority));
  port.queued[priority] -= p.bytes;
  port.queued_total -= p.bytes;
  if (ecn_marks(port.ecn, port.queued[priority], port.draws)) {
    p.ecn = 1;
    ++port.counters.marked_packets;
    port.counters.marked_bytes += p.bytes;
    ++world_.log.totals.marks;
  }
  port.counters.tx_bytes += p.bytes;
  ++port.counters.tx_packets;
  transmit(port, p, now);
  SharedBuffer& shared = w.sw.buffer;
  shared.release(p.in_port, priority, p.bytes);
  if (shared.should_resume(p.in_port, priority)) {
    shared.ingress(p.in_port, priority).paused = false;
    --w.sw.paused_ingresses;
    send_pfc(w, p.in_port, priority, false, now);
  }
}

void WindowEngine::send_pfc(OrderedWindow& w, std::uint32_t in_port, unsigned priority, bool pause,
                            Time now) {
  Port& back = w.sw.ports[in_port];
  back.pfc.push({0, static_cast<std::uint8_t>(priority), pause});
  ++(pause ? world_.log.totals.pauses : world_.log.totals.resumes);
  kick(w, back, now);
}

void WindowEngine::switch_pfc(OrderedWindow& w, Port& port, const PfcFrame& frame, Time now) {
  const std::uint8_t bit = static_cast<std::uint8_t>(1u << frame.priority);
  if (frame.pause && !(port.paused & bit)) {
    port.paused |= bit;
    port.paused_since[frame.priority] = now;
    ++w.sw.paused_egresses;
  } else if (!frame.pause && (port.paused & bit)) {
    port.paused &= static_cast<std::uint8_t>(~bit);
    port.pause_sum[frame.priority] += now - port.paused_since[frame.priority];
    --w.sw.paused_egresses;
    if (port.eligible()) w.schedule(port, now);
  }
}

}  // namespace dcqcn
