// Switches of the window engine while PFC provably cannot fire in the window: then ports do not
// influence each other, and each egress port is worked off alone with its state in registers. With
// several classes, or ACKs in that of their data, so is each port with the queues of its classes.
#include <algorithm>

#include "model/fabric/ecn.hpp"
#include "sim/window_engine.hpp"

namespace dcqcn {

// No ingress is paused, and even if every link brought all it can in this window and nothing left,
// none would reach its threshold (which also rules out drops and headroom). First by what links can
// carry; where that is too much, by what is on them. Of several classes each might be all of it.
bool WindowEngine::pfc_cannot_fire(const Switch& sw, Time begin, Time end, bool look) const {
  if (sw.paused_ingresses) return false;
  const Bytes windows = end - begin > window_ ? 2 : 1;
  const auto at_most = [&](std::uint32_t p) {
    const Ring<Packet>& in = sw.from[p]->wire;
    return std::min(windows * sw.window_bytes[p], static_cast<Bytes>(in.size()) * max_packet_);
  };
  const auto counted = [&](std::uint32_t p) {
    const Ring<Packet>& in = sw.from[p]->wire;
    Bytes bytes = 0;
    for (std::uint32_t i = 0; i < in.size() && in[i].arrival < end; ++i) {
      if (in[i].is_data() || (control_waits_ && waits_in_class(in[i]))) bytes += in[i].bytes;
    }
    return bytes;
  };
  return stays_below(sw, at_most) || (look && stays_below(sw, counted));
}

// does no ingress reach its threshold if port p brings bytes_of(p)?
template <typename BytesOf>
bool WindowEngine::stays_below(const Switch& sw, BytesOf&& bytes_of) const {
  Bytes coming = 0;
  Bytes most = 0;
  for (std::uint32_t p = 0; p < sw.degree; ++p) {
    if (sw.from[p]->wire.empty()) continue;
    const Bytes bytes = bytes_of(p);
    coming += bytes;
    for (const unsigned priority : priorities_) {
      most = std::max(most, sw.buffer.ingress(p, priority).used + bytes);
    }
  }
  // with a threshold of 0 every arrival pauses, one within the reserve too
  const Bytes over = std::max<Bytes>(0, most - sw.buffer.pfc().reserve);
  return over < sw.buffer.threshold_at(sw.buffer.shared_used() + coming);
}

// packets that enter the fabric here, in the order of the contract, for the monitor
void WindowEngine::record_arrivals(Lane& lane, std::uint32_t s, Time begin, Time end) {
  Switch& sw = switches_[s];
  lane.recorded.clear();
  for (std::uint32_t p = 0; p < sw.degree; ++p) {
    if (!sw.from_host[p]) continue;
    const Ring<Packet>& in = sw.from[p]->wire;
    for (std::uint32_t i = 0; i < in.size() && in[i].arrival < end; ++i) {
      if (in[i].is_data() && !in[i].retransmit) {
        lane.recorded.add_to_run(
            p, ArrivalKey::make(static_cast<std::uint64_t>(in[i].arrival - begin), p, i));
      }
    }
  }
  const std::uint64_t* keys = lane.recorded.sorted(lane.scratch);
  for (std::uint32_t i = 0; i < lane.recorded.size(); ++i) {
    const Packet& p = sw.from[ArrivalKey::port(keys[i])]->wire[ArrivalKey::place(keys[i])];
    world_.monitor.record(static_cast<int>(s), world_.transport.flow_key(p.qp),
                          static_cast<std::uint32_t>(p.bytes - world_.scenario.wire.data_overhead));
  }
}

// Sorts what arrives at one port in this window by egress port; `count` sees every packet.
template <WindowEngine::Waiting waiting, typename Count>
std::uint32_t WindowEngine::sort_by_egress(Lane& lane, const Switch& sw, int node, std::uint32_t p,
                                           Time begin, Time end, Count&& count) {
  const Ring<Packet>& in = sw.from[p]->wire;
  const std::uint32_t n = in.size();
  std::uint32_t i = 0;
  for (; i < n; ++i) {
    const Packet& packet = in[i];
    if (packet.arrival >= end) break;
    const unsigned egress = world_.topology.route(node, packet.dst, packet.entropy);
    RunList& out = lane.by_egress[egress];
    const std::uint64_t key =
        ArrivalKey::make(static_cast<std::uint64_t>(packet.arrival - begin), p, i);
    out.add_to_run(p, key);
    if constexpr (waiting == Waiting::kMany) {
      lane.seen[egress] |= static_cast<std::uint8_t>(1u << packet.priority);
    }
    count(packet, key);
  }
  lane.totals.hops += i;
  return i;
}

// Fills by_egress_ and taken_ (packets by in-port) with what arrives in this window, and has the
// monitor count what enters the fabric here.
template <WindowEngine::Waiting waiting>
void WindowEngine::sort_arrivals(Lane& lane, std::uint32_t s, Time begin, Time end) {
  const Switch& sw = switches_[s];
  const int node = world_.topology.hosts() + static_cast<int>(s);
  Monitor& monitor = world_.monitor;
  const Bytes overhead = world_.scenario.wire.data_overhead;
  const bool in_runs = monitor.takes_runs();
  lane.flow_runs.clear();
  for (std::uint32_t p = 0; p < sw.degree; ++p) {
    if (!in_runs || !sw.from_host[p]) {
      lane.taken[p] = sort_by_egress<waiting>(lane, sw, node, p, begin, end,
                                              [](const Packet&, std::uint64_t) {});
      continue;
    }
    std::uint32_t key_of_run = 0;  // no flow's
    lane.taken[p] = sort_by_egress<waiting>(
        lane, sw, node, p, begin, end, [&](const Packet& x, std::uint64_t order) {
          if (!x.is_data() || x.retransmit) return;
          const std::uint32_t key = world_.transport.flow_key(x.qp);
          if (key != key_of_run) lane.flow_runs.push_back({.order = order, .key = key});
          key_of_run = key;
          lane.flow_runs.back().weight +=
              monitor.weight_of(static_cast<std::uint32_t>(x.bytes - overhead));
        });
  }
  if (monitor.wants_packets() && !monitor.record_runs(static_cast<int>(s), lane.flow_runs)) {
    record_arrivals(lane, s, begin, end);
  }
}

template <WindowEngine::Waiting waiting>
void WindowEngine::run_switch_fast(Lane& lane, std::uint32_t s, Time begin, Time end) {
  Switch& sw = switches_[s];
  const int node = world_.topology.hosts() + static_cast<int>(s);
  for (std::uint32_t p = 0; p < sw.degree; ++p) {
    lane.by_egress[p].clear();
    lane.seen[p] = 0;
    for (const unsigned priority : priorities_) {
      lane.used[used_at<waiting>(p, priority)] = sw.buffer.ingress(p, priority).used;
    }
  }
  sort_arrivals<waiting>(lane, s, begin, end);
  Time wake = kNever;
  for (std::uint32_t p = 0; p < sw.degree; ++p) {
    Port& port = sw.ports[p];
    Ring<PfcFrame>& frames = sw.from[p]->pfc_wire;
    if ((!frames.empty() && frames.front().arrival < end) || port.pause.any() ||
        !port.pfc.empty()) {
      run_port_fast<true, waiting>(lane, sw, port, begin, end);
    } else if (lane.by_egress[p].size() > 0 || port.backlog || !port.control.empty()) {
      run_port_fast<false, waiting>(lane, sw, port, begin, end);
    } else {
      continue;
    }
    if (port.eligible()) wake = std::min(wake, port.busy);
    if (!port.wire.empty()) update_wake(port.peer_node, port.wire.front().arrival);
    if (!port.pfc_wire.empty()) update_wake(port.peer_node, port.pfc_wire.front().arrival);
  }
  for (std::uint32_t p = 0; p < sw.degree; ++p) {
    Ring<Packet>& in = sw.from[p]->wire;
    in.drop(lane.taken[p]);
    for (const unsigned priority : priorities_) {
      sw.buffer.set_used(p, priority, lane.used[used_at<waiting>(p, priority)]);
    }
    if (!in.empty()) wake = std::min(wake, in.front().arrival);
    if (!sw.from[p]->pfc_wire.empty()) {
      wake = std::min(wake, sw.from[p]->pfc_wire.front().arrival);
    }
  }
  wakes_[static_cast<std::size_t>(node)] = wake;
}

// a port of several classes meets mostly one of them in a window
template <bool pausing, WindowEngine::Waiting waiting>
inline void WindowEngine::run_port_fast(Lane& lane, Switch& sw, Port& port, Time begin, Time end) {
  unsigned ours = priority_;
  if constexpr (waiting == Waiting::kMany) {
    const unsigned bits =
        port.backlog | unsigned{lane.seen[static_cast<std::size_t>(&port - sw.ports)]};
    if (bits & (bits - 1))
      return run_egress_fast<pausing, Waiting::kMany>(lane, sw, port, 0, begin, end);
    if (bits) ours = static_cast<unsigned>(std::countr_zero(bits));
  }
  constexpr Waiting kAlone = waiting == Waiting::kData ? Waiting::kData : Waiting::kOne;
  run_egress_fast<pausing, kAlone>(lane, sw, port, ours, begin, end);
}

// One long function on purpose: what it counts stays in registers, and it is where time goes.
// `pausing`: the port is paused, or may become so, or has a PFC frame to send. `ours`: the priority
// of all that waits, unless it is `kMany`.
template <bool pausing, WindowEngine::Waiting waiting>
// NOLINTNEXTLINE(readability-function-size)
void WindowEngine::run_egress_fast(Lane& lane, Switch& sw, Port& port, unsigned ours, Time begin,
                                   Time end) {
  RunList& arrivals = lane.by_egress[static_cast<std::size_t>(&port - sw.ports)];
  Ring<Packet>& our_data = port.data[ours];
  Ring<Packet>& control = port.control;
  const Time ps_per_byte = port.ps_per_byte;
  const Time delay = port.delay;
  constexpr bool kManyWait = waiting == Waiting::kMany;
  const bool weighted = waiting != Waiting::kData && weighted_;
  const Classes& classes = world_.scenario.classes;
  const EcnSetting& our_curve = waiting == Waiting::kOne ? classes.curve(ours, port.ecn) : port.ecn;
  const Bytes kmin = our_curve.kmin;
  const bool control_waits = control_waits_;
  Time busy = port.busy;
  Bytes queue = port.queued_total;
  unsigned backlog = port.backlog;  // `kManyWait` alone
  unsigned last_served = port.last_served;
  Bytes max_queue = port.counters.max_queue;
  Bytes sent_bytes = 0;
  std::uint64_t sent = 0;

  const auto launch = [&](const Packet& p, Time start) -> Packet& {
    Packet& w = port.wire.push_slot();
    w = p;
    busy = start + p.bytes * ps_per_byte;
    w.arrival = busy + delay;
    return w;
  };
  const auto ready = [&] { return pausing ? backlog & ~unsigned{port.pause.bits()} : backlog; };
  const auto waits = [&] {
    if (!control.empty() || (pausing && !port.pfc.empty())) return true;
    if constexpr (kManyWait) return ready() != 0;
    return !our_data.empty() && !(pausing && port.pause.paused(ours));
  };
  const auto dequeue = [&] {
    if constexpr (pausing) {
      if (!port.pfc.empty()) {
        PfcFrame frame = port.pfc.pop();
        busy += world_.scenario.wire.pfc * ps_per_byte;
        frame.arrival = busy + delay;
        port.pfc_wire.push(frame);
        return;
      }
    }
    if (!control.empty()) {
      launch(control.front(), busy);
      control.drop();
      return;
    }
    if constexpr (kManyWait) last_served = take_turn(port, last_served, ready());
    const unsigned priority = kManyWait ? last_served : ours;
    Ring<Packet>& data = kManyWait ? port.data[priority] : our_data;
    Packet& w = launch(data.front(), busy);
    data.drop();
    queue -= w.bytes;
    lane.used[used_at<waiting>(w.in_port, priority)] -= w.bytes;
    sent_bytes += w.bytes;
    ++sent;
    Bytes left = queue;
    if constexpr (kManyWait) {
      if (data.empty()) backlog &= ~(1u << priority);
      left = port.queued[priority] -= w.bytes;
      if (weighted) {
        mark_departing(port, classes.curve(priority, port.ecn), w, left, lane.totals);
        return;
      }
    } else if (weighted) {
      take_only_turn(port, last_served, ours, w.bytes, data.empty());
      last_served = ours;
    }
    if (left > kmin) mark_departing(port, our_curve, w, left, lane.totals);
  };
  // frames take effect before the dequeues of their instant
  const auto take_frames = [&](Time until) {
    Ring<PfcFrame>& frames = sw.from[&port - sw.ports]->pfc_wire;
    while (!frames.empty() && frames.front().arrival < until) {
      const PfcFrame frame = frames.pop();
      while (busy < frame.arrival && waits()) dequeue();
      const bool waited = waits();
      port.take(frame, frame.arrival);
      if (!waited && waits()) busy = std::max(busy, frame.arrival);
    }
  };

  const std::uint64_t* keys = arrivals.sorted(lane.scratch);
  for (std::uint32_t i = 0; i < arrivals.size(); ++i) {
    const Time now = begin + ArrivalKey::offset(keys[i]);
    const std::uint32_t in_port = ArrivalKey::port(keys[i]);
    const Packet& p = sw.from[in_port]->wire[ArrivalKey::place(keys[i])];
    if constexpr (pausing) take_frames(now + 1);
    while (busy <= now && waits()) dequeue();
    const bool in_class =
        p.is_data() || (waiting != Waiting::kData && control_waits && waits_in_class(p));
    const unsigned priority = kManyWait ? static_cast<unsigned>(p.priority) : ours;
    if (busy <= now && !(pausing && in_class && port.pause.paused(priority))) {
      launch(p, now);  // idle: it starts at once
      if (in_class) {
        sent_bytes += p.bytes;
        ++sent;
        if (weighted) take_only_turn(port, last_served, priority, p.bytes, true);
        if constexpr (kManyWait) last_served = priority;
      }
    } else if (in_class) {
      Packet& q = (kManyWait ? port.data[priority] : our_data).push_slot();
      q = p;
      q.in_port = static_cast<std::uint16_t>(in_port);
      queue += p.bytes;
      if constexpr (kManyWait) {
        port.queued[priority] += p.bytes;
        backlog |= 1u << priority;
      }
      lane.used[used_at<waiting>(in_port, priority)] += p.bytes;
      max_queue = std::max(max_queue, queue);
    } else {
      control.push(p);
    }
  }
  if constexpr (pausing) take_frames(end);
  while (busy < end && waits()) dequeue();

  port.busy = busy;
  port.queued_total = queue;
  if constexpr (kManyWait) {
    port.backlog = static_cast<std::uint8_t>(backlog);
    port.last_served = static_cast<std::uint8_t>(last_served);
  } else {
    if (waiting == Waiting::kOne && sent > 0) port.last_served = static_cast<std::uint8_t>(ours);
    port.queued[ours] = queue;
    port.backlog = our_data.empty() ? 0 : static_cast<std::uint8_t>(1u << ours);
  }
  port.counters.max_queue = max_queue;
  port.counters.tx_bytes += sent_bytes;
  port.counters.tx_packets += sent;
}

void WindowEngine::run_switch_fast(Lane& lane, std::uint32_t s, Time begin, Time end) {
  if (priorities_.size() > 1 || weighted_) {
    run_switch_fast<Waiting::kMany>(lane, s, begin, end);
  } else if (control_waits_) {
    run_switch_fast<Waiting::kOne>(lane, s, begin, end);
  } else {
    run_switch_fast<Waiting::kData>(lane, s, begin, end);
  }
}

}  // namespace dcqcn
