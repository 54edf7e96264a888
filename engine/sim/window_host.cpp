// Hosts of the window engine: the NIC's round robin over its queue pairs, and what arrives.
#include <algorithm>
#include <bit>

#include "sim/window_engine.hpp"

namespace dcqcn {

// ---- the scheduler: a bitmap of QPs that may send, a heap of QPs that wait for their pacing ----

void WindowEngine::set_ready(Nic& nic, std::uint32_t place) {
  nic.places[place] = Place::kReady;
  nic.ready[place >> 6] |= 1ull << (place & 63);
  ++nic.ready_count;
}

void WindowEngine::wait_until_due(Nic& nic, std::uint32_t place, Time when) {
  nic.places[place] = Place::kWaiting;
  nic.waiting.push_back({when, place});
  std::push_heap(nic.waiting.begin(), nic.waiting.end());
}

void WindowEngine::release_due(Nic& nic, Time now) {
  while (!nic.waiting.empty() && nic.waiting.front().when <= now) {
    const std::uint32_t place = nic.waiting.front().id;
    std::pop_heap(nic.waiting.begin(), nic.waiting.end());
    nic.waiting.pop_back();
    set_ready(nic, place);
  }
}

// an idle QP that may send again gets its place in the schedule
void WindowEngine::reconsider(Nic& nic, Qp& q) {
  if (nic.places[q.nic_slot] == Place::kIdle && q.may_send()) {
    wait_until_due(nic, q.nic_slot, q.next_send);
  }
}

void WindowEngine::reconsider_idle(Nic& nic) {
  for (std::size_t place = 0; place < nic.places.size(); ++place) {
    if (nic.places[place] == Place::kIdle) reconsider(nic, world_.transport.qp(nic.qps[place]));
  }
}

// the next ready place after the last served, in circular order, that no pause stops
bool WindowEngine::take_ready(Nic& nic, std::uint32_t& place) {
  const std::uint32_t words = static_cast<std::uint32_t>(nic.ready.size());
  std::uint32_t word = (nic.last_served + 1) >> 6;
  std::uint64_t mask = ~0ull << ((nic.last_served + 1) & 63);
  if (word >= words) {
    word = 0;
    mask = ~0ull;
  }
  for (std::uint32_t i = 0; i <= words; ++i) {
    std::uint64_t bits = nic.ready[word] & mask;
    while (bits) {
      place = (word << 6) + static_cast<std::uint32_t>(std::countr_zero(bits));
      bits &= bits - 1;
      Qp& q = world_.transport.qp(nic.qps[place]);
      if (nic.port->pause.paused(q.priority)) continue;
      if (q.may_send()) return true;
      nic.places[place] = Place::kIdle;  // its window has closed since
      nic.ready[word] &= ~(1ull << (place & 63));
      --nic.ready_count;
    }
    mask = ~0ull;
    word = word + 1 == words ? 0 : word + 1;
  }
  return false;
}

void WindowEngine::send_from(Nic& nic, std::uint32_t place, Time now) {
  TransportLayer& transport = world_.transport;
  Qp& q = transport.qp(nic.qps[place]);
  const Packet p = transport.send(q, now);
  transmit(*nic.port, p, now);
  nic.port->counters.tx_bytes += p.bytes;
  ++nic.port->counters.tx_packets;
  nic.last_served = place;
  if (!q.may_send()) {
    nic.places[place] = Place::kIdle;
  } else if (q.next_send > nic.port->busy) {
    nic.places[place] = Place::kWaiting;
  }
  if (nic.places[place] != Place::kReady) {
    nic.ready[place >> 6] &= ~(1ull << (place & 63));
    --nic.ready_count;
    if (nic.places[place] == Place::kWaiting) wait_until_due(nic, place, q.next_send);
  }
  if (transport.must_arm(q)) arm_rto(nic, q);
}

// start every frame that begins in [from, last]; `from` is the last instant anything changed
void WindowEngine::run_nic(Nic& nic, Time from, Time last) {
  Port& port = *nic.port;
  Time now = std::max(port.busy, from);
  while (now <= last) {
    if (!port.control.empty()) {
      transmit(port, port.control.front(), now);
      port.control.drop();
    } else {
      if (one_priority_ && port.pause.any()) return;
      release_due(nic, now);
      std::uint32_t place;
      if (nic.ready_count > 0 && take_ready(nic, place)) {
        send_from(nic, place, now);
      } else if (nic.waiting.empty()) {
        return;
      } else {
        now = std::max(now, nic.waiting.front().when);
        continue;
      }
    }
    now = std::max(port.busy, from);
  }
}

// ---- what happens at a host in one window ----

void WindowEngine::host_pfc(std::uint32_t host, Nic& nic, const PfcFrame& frame, Time now) {
  ++nic.port->counters.pfc_received;
  if (!nic.port->pause.take(frame.priority, frame.pause, now)) return;
  world_.transport.on_pause(static_cast<int>(host), frame.priority, frame.pause, now);
  if (world_.transport.windowed()) reconsider_idle(nic);
}

void WindowEngine::arm_rto(Nic& nic, const Qp& q) {
  nic.rtos.push_back({q.rto_at, q.ref});
  std::push_heap(nic.rtos.begin(), nic.rtos.end());
}

void WindowEngine::run_rto(Nic& nic, Time now) {
  const std::uint32_t ref = nic.rtos.front().id;
  std::pop_heap(nic.rtos.begin(), nic.rtos.end());
  nic.rtos.pop_back();
  Qp* q = world_.transport.find(ref);
  if (!q) return;
  const Then then = world_.transport.on_timer(*q, now);
  if (then == Then::kArm) arm_rto(nic, *q);
  if (then == Then::kLookAgain) reconsider(nic, *q);
}

void WindowEngine::run_tick(std::uint32_t host, Nic& nic, Time now) {
  Replies replies;
  world_.transport.tick(static_cast<int>(host), now, replies);
  send_replies(nic, replies, now);
  if (world_.transport.windowed()) reconsider_idle(nic);
}

// the first of what is due before the dequeues of this instant: PFC, then timers
void WindowEngine::run_timers(std::uint32_t host, Nic& nic, Time now) {
  Ring<PfcFrame>& pfc = nic.from->pfc_wire;
  if (!pfc.empty() && pfc.front().arrival == now) {
    host_pfc(host, nic, pfc.pop(), now);
  } else if (!nic.rtos.empty() && nic.rtos.front().when == now) {
    run_rto(nic, now);
  } else if (!nic.delayed_cnps.empty() && nic.delayed_cnps.front().arrival == now) {
    nic.port->control.push(nic.delayed_cnps.pop());
  } else {
    run_tick(host, nic, now);
  }
}

inline void WindowEngine::send_replies(Nic& nic, const Replies& replies, Time now) {
  replies.hand_over(
      [&](const Packet& cnp) {
        Packet& later = nic.delayed_cnps.push_slot();
        later = cnp;
        later.arrival = now + world_.transport.cnp_delay();
      },
      [&](const Packet& p) { nic.port->control.push(p); });
}

// a QP is gone: its place is free
void WindowEngine::forget(Nic& nic, std::uint32_t place) {
  if (nic.places[place] == Place::kReady) {  // a sender that went back and need not have
    nic.ready[place >> 6] &= ~(1ull << (place & 63));
    --nic.ready_count;
  } else if (nic.places[place] == Place::kWaiting) {
    std::erase_if(nic.waiting, [&](const Due& d) { return d.id == place; });
    std::make_heap(nic.waiting.begin(), nic.waiting.end());
  }
  nic.places[place] = Place::kFree;
}

void WindowEngine::host_packet(std::uint32_t host, Nic& nic, const Packet& p, Time now) {
  TransportLayer& transport = world_.transport;
  if (p.is_data()) {
    Replies replies;
    transport.on_data(p, static_cast<int>(host), now, replies);
    send_replies(nic, replies, now);
    if (!transport.chained.empty()) {
      for (const FlowStart& f : transport.chained) nic.chained.push(f);
      transport.chained.clear();
    }
    return;
  }
  Qp* q = transport.find(p.qp);
  if (!q) return;
  if (transport.on_control(*q, p, now) == Then::kGone) {
    forget(nic, q->nic_slot);
  } else {
    reconsider(nic, *q);
  }
}

void WindowEngine::start_flow(Nic& nic, const FlowStart& flow, Time now) {
  const std::uint32_t slot = world_.transport.start_flow(flow, now);
  Qp& q = world_.transport.qp(slot);
  if (q.nic_slot == kNone) {  // the lowest free place
    std::uint32_t place = 0;
    while (place < nic.places.size() && nic.places[place] != Place::kFree) ++place;
    if (place == nic.places.size()) {
      nic.places.push_back(Place::kFree);
      nic.qps.push_back(kNone);
      if (nic.ready.size() * 64 < nic.places.size()) nic.ready.push_back(0);
    }
    nic.qps[place] = slot;
    nic.places[place] = Place::kIdle;
    q.nic_slot = place;
  }
  reconsider(nic, q);
}

void WindowEngine::run_job(std::uint32_t host, Nic& nic, Time now) {
  flows_.clear();
  world_.source.jobs().happen(static_cast<int>(host), flows_);
  for (const FlowStart& f : flows_) {
    start_flow(nic, f, now);
    run_nic(nic, now, now);
  }
}

Time WindowEngine::host_wake(std::uint32_t host, const Nic& nic) const {
  Time wake = world_.transport.next_tick(static_cast<int>(host));
  const auto at = [&](Time t) { wake = std::min(wake, t); };
  at(world_.source.jobs().due(static_cast<int>(host)));
  if (!nic.from->wire.empty()) at(nic.from->wire.front().arrival);
  if (!nic.from->pfc_wire.empty()) at(nic.from->pfc_wire.front().arrival);
  if (!nic.starts.empty()) at(nic.starts.front().start);
  if (!nic.delayed_cnps.empty()) at(nic.delayed_cnps.front().arrival);
  if (!nic.rtos.empty()) at(nic.rtos.front().when);
  if (!nic.port->control.empty()) at(nic.port->busy);
  if (!(one_priority_ && nic.port->pause.any())) {
    if (nic.ready_count > 0) at(nic.port->busy);
    if (!nic.waiting.empty()) at(std::max(nic.port->busy, nic.waiting.front().when));
  }
  return wake;
}

// among many queue pairs that of a packet is fetched so many packets before it is its turn
inline constexpr std::uint32_t kAhead = 3;

inline void fetch_first(const TransportLayer& transport, const Ring<Packet>& in) {
  for (std::uint32_t i = 0; i < std::min(in.size(), kAhead); ++i) transport.prefetch(in[i]);
}

// One function: what it compares stays in registers.
template <bool more, bool apart>
// NOLINTNEXTLINE(readability-function-size)
void WindowEngine::run_host(Lane& lane, std::uint32_t host, Time begin, Time end) {
  Nic& nic = nics_[host];
  Ring<Packet>& in = nic.from->wire;
  Ring<PfcFrame>& pfc = nic.from->pfc_wire;
  const Time& tick = world_.transport.next_tick(static_cast<int>(host));
  const Time& job = world_.source.jobs().due(static_cast<int>(host));
  Time changed = begin;
  const bool crowded = world_.transport.crowded();
  if (crowded) fetch_first(world_.transport, in);
  while (true) {
    const Time arrival = in.empty() ? kNever : in.front().arrival;
    const Time pause = pfc.empty() ? kNever : pfc.front().arrival;
    const Time rto = nic.rtos.empty() ? kNever : nic.rtos.front().when;
    const Time cnp = nic.delayed_cnps.empty() ? kNever : nic.delayed_cnps.front().arrival;
    const Time chained = nic.chained.empty() ? kNever : nic.chained.front().start;
    const Time start = nic.starts.empty() ? kNever : nic.starts.front().start;
    const Time early = std::min({pause, rto, cnp, more ? tick : kNever});
    const Time late = std::min({arrival, chained, start, more ? job : kNever});
    if (std::min(early, late) >= end) break;
    if (early <= late) {  // before the dequeues of its instant: PFC, then timers
      run_nic(nic, changed, early - 1);
      changed = early;
      run_timers(host, nic, early);
      continue;
    }
    if (apart && (arrival != late || world_.transport.waits_its_turn(in.front()))) {
      lane.stops.push_back({host, changed});
      return;
    }
    run_nic(nic, changed, late);
    changed = late;
    if (arrival == late) {
      ++lane.totals.hops;
      if (crowded && in.size() > kAhead) world_.transport.prefetch(in[kAhead]);
      host_packet(host, nic, in.front(), late);
      in.drop();
    } else if (more && job == late && chained != late) {
      run_job(host, nic, late);
    } else {
      start_flow(nic, (chained == late ? nic.chained : nic.starts).pop(), late);
    }
    run_nic(nic, changed, late);
  }
  run_nic(nic, changed, end - 1);
  wakes_[host] = host_wake(host, nic);
  const Port& out = *nic.port;
  if (!out.wire.empty()) update_wake(out.peer_node, out.wire.front().arrival);
}

void WindowEngine::run_host(Lane& lane, std::uint32_t host, Time begin, Time end) {
  if (world_.transport.ticks() || world_.source.jobs().any()) {
    run_host<true, false>(lane, host, begin, end);
  } else {
    run_host<false, false>(lane, host, begin, end);
  }
}

template void WindowEngine::run_host<false, true>(Lane& lane, std::uint32_t host, Time begin,
                                                  Time end);

}  // namespace dcqcn
