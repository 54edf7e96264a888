#include "sim/event_engine.hpp"

#include "model/ecn.hpp"
#include "sim/port_reports.hpp"

namespace dcqcn {

EventEngine::EventEngine(const World& world)
    : world_(world), nics_(static_cast<std::size_t>(world.topology.hosts())) {
  const Topology& t = world_.topology;
  ports_.resize(static_cast<std::size_t>(t.port_count()));
  for (int i = 0; i < t.port_count(); ++i) {
    ports_[static_cast<std::size_t>(i)].spec = t.port(i);
    ports_[static_cast<std::size_t>(i)].draws =
        RandomStream(world.seed, Purpose::kMarking, static_cast<std::uint64_t>(i));
  }
  for (int n = t.hosts(); n < t.nodes(); ++n) {
    std::vector<Bytes> headrooms;
    for (int p = t.first_port(n); p < t.first_port(n + 1); ++p) {
      headrooms.push_back(t.port(p).headroom);
    }
    buffers_.emplace_back(world.scenario.pfc,
                          world.scenario.switches[static_cast<std::size_t>(n - t.hosts())].buffer,
                          headrooms);
  }
}

void EventEngine::schedule(What what, std::uint64_t id, Time when) {
  events_.push({when, static_cast<std::uint64_t>(what) << 56 | id});
}

void EventEngine::run(Time until) {
  while (true) {
    // flow starts come last within a picosecond, so events at the same instant go first
    const Time flow = world_.source.next_time();
    const Time event = events_.empty() ? kNever : events_.top().when;
    if (std::min(flow, event) >= until) return;
    if (flow < event) {
      starts_.clear();
      world_.source.take_until(flow + 1, starts_);
      for (const FlowStart& f : starts_) start_flow(f, flow);
      continue;
    }
    const Event e = events_.top();
    events_.pop();
    const std::uint64_t id = e.order & ((1ull << 56) - 1);
    switch (static_cast<What>(e.order >> 56)) {
      case What::kPfc:
        on_pfc(ports_[id], e.when);
        break;
      case What::kRto:
        on_rto(static_cast<std::uint32_t>(id), e.when);
        break;
      case What::kDelayedCnp:
        port_of(static_cast<int>(id), 0).control.push(nics_[id].delayed_cnps.pop());
        wake(port_of(static_cast<int>(id), 0), e.when);
        break;
      case What::kDequeue:
        if (ports_[id].wake == e.when) {
          ports_[id].wake = kNever;
          service(ports_[id], e.when);
        }
        break;
      case What::kArrival:
        on_arrival(ports_[id], e.when);
        break;
      case What::kFlow:
        start_flow(chained_.pop(), e.when);
        break;
    }
  }
}

// ---- egress ----

void EventEngine::wake(Port& port, Time when) {
  when = std::max(when, port.busy);
  if (when < port.wake) {
    port.wake = when;
    schedule(What::kDequeue, id_of(port), when);
  }
}

void EventEngine::kick(Port& port, Time now) {
  if (port.busy <= now) {
    service(port, now);
  } else {
    wake(port, port.busy);
  }
}

// start the next frame of a free port: PFC, then ACK and CNP, then data
void EventEngine::service(Port& port, Time now) {
  if (!port.pfc.empty()) {
    PfcFrame frame = port.pfc.pop();
    port.busy = now + world_.scenario.wire.pfc * port.spec.ps_per_byte;
    frame.arrival = port.busy + port.spec.delay;
    port.pfc_wire.push(frame);
    schedule(What::kPfc, static_cast<std::uint64_t>(port.spec.peer_port), frame.arrival);
  } else if (!port.control.empty()) {
    transmit(port, port.control.pop(), now);
  } else if (port.spec.node < world_.topology.hosts()) {
    if (!transmit_from_nic(port, now)) return;
  } else {
    unsigned priority;
    if (!pick_priority(port, priority)) return;
    port.last_served = priority;
    transmit_data(port, now);
  }
  port.wake = kNever;  // an event that was pending for an earlier instant is void
  wake(port, port.busy);
}

void EventEngine::transmit(Port& port, Packet p, Time now) {
  port.busy = now + p.bytes * port.spec.ps_per_byte;
  p.arrival = port.busy + port.spec.delay;
  // at switches everything in the data class counts
  const bool in_class =
      world_.scenario.pfc.acks_as_data && port.spec.node >= world_.topology.hosts();
  if (p.is_data() || in_class) {
    port.counters.tx_bytes += p.bytes;
    ++port.counters.tx_packets;
  }
  if (port.wire.empty()) {
    schedule(What::kArrival, static_cast<std::uint64_t>(port.spec.peer_port), p.arrival);
  }
  port.wire.push(p);
}

bool EventEngine::pick_priority(const Port& port, unsigned& priority) const {
  for (unsigned i = 1; i <= 8; ++i) {
    priority = (port.last_served + i) & 7;
    if (!port.data[priority].empty() && !(port.paused >> priority & 1)) return true;
  }
  return false;
}

void EventEngine::transmit_data(Port& port, Time now) {
  const unsigned priority = port.last_served;
  Packet p = port.data[priority].pop();
  port.queued[priority] -= p.bytes;
  port.queued_total -= p.bytes;
  if (ecn_marks(port.ecn, port.queued[priority], port.draws)) {
    p.ecn = 1;
    ++port.counters.marked_packets;
    port.counters.marked_bytes += p.bytes;
    ++world_.log.totals.marks;
  }
  transmit(port, p, now);
  SharedBuffer& shared = buffer(port.spec.node);
  shared.release(p.in_port, priority, p.bytes);
  if (shared.should_resume(p.in_port, priority)) {
    shared.ingress(p.in_port, priority).paused = false;
    send_pfc(port.spec.node, p.in_port, priority, false, now);
  }
}

// round robin over the QPs that may send now; if none, wake when the first one may
bool EventEngine::transmit_from_nic(Port& port, Time now) {
  Nic& nic = nics_[static_cast<std::size_t>(port.spec.node)];
  const std::uint32_t n = static_cast<std::uint32_t>(nic.slots.size());
  Time soonest = kNever;
  for (std::uint32_t i = 1; i <= n; ++i) {
    const std::uint32_t place = (nic.last_served + i) % n;
    if (nic.slots[place] == kNone) continue;
    Qp& q = world_.transport.qp(nic.slots[place]);
    if (!world_.transport.may_send(q) || (port.paused >> q.priority & 1)) continue;
    if (q.next_send > now) {
      soonest = std::min(soonest, q.next_send);
      continue;
    }
    nic.last_served = place;
    transmit(port, world_.transport.send(q, now), now);
    if (world_.transport.lossy()) arm_rto(q);
    return true;
  }
  if (soonest != kNever) wake(port, soonest);
  return false;
}

void EventEngine::send_pfc(int node, unsigned in_port, unsigned priority, bool pause, Time now) {
  Port& back = port_of(node, in_port);
  back.pfc.push({0, static_cast<std::uint8_t>(priority), pause});
  ++back.counters.pfc_sent;
  ++(pause ? world_.log.totals.pauses : world_.log.totals.resumes);
  kick(back, now);
}

// ---- what arrives ----

void EventEngine::on_pfc(Port& port, Time now) {
  const PfcFrame frame = ports_[static_cast<std::size_t>(port.spec.peer_port)].pfc_wire.pop();
  ++port.counters.pfc_received;
  const std::uint8_t bit = static_cast<std::uint8_t>(1u << frame.priority);
  if (frame.pause && !(port.paused & bit)) {
    port.paused |= bit;
    port.paused_since[frame.priority] = now;
  } else if (!frame.pause && (port.paused & bit)) {
    port.paused &= static_cast<std::uint8_t>(~bit);
    port.pause_sum[frame.priority] += now - port.paused_since[frame.priority];
    wake(port, now);
  }
}

void EventEngine::on_arrival(Port& port, Time now) {
  Port& far = ports_[static_cast<std::size_t>(port.spec.peer_port)];
  const Packet p = far.wire.pop();
  if (!far.wire.empty()) schedule(What::kArrival, id_of(port), far.wire.front().arrival);
  ++world_.log.totals.hops;
  if (port.spec.node < world_.topology.hosts()) {
    host_arrival(port.spec.node, p, now);
  } else {
    switch_arrival(port, p, now);
  }
}

void EventEngine::switch_arrival(Port& in, Packet p, Time now) {
  const int node = in.spec.node;
  Port& out = port_of(node, world_.topology.route(node, p.dst, p.entropy));
  if (!p.is_data() && !world_.scenario.pfc.acks_as_data) {
    out.control.push(p);
    kick(out, now);
    return;
  }
  const unsigned in_port = static_cast<unsigned>(in.spec.index);
  const unsigned priority = static_cast<unsigned>(p.priority);
  const int from = world_.topology.port(in.spec.peer_port).node;
  if (p.is_data() && from < world_.topology.hosts() && !p.retransmit &&
      world_.monitor.wants_packets()) {
    world_.monitor.record(node - world_.topology.hosts(), world_.transport.flow_key(p.qp),
                          static_cast<std::uint32_t>(p.bytes - world_.scenario.wire.data_overhead));
  }
  SharedBuffer& shared = buffer(node);
  if (!shared.admit(in_port, priority, p.bytes)) {
    ++out.counters.dropped;
    ++world_.log.totals.drops;
    return;
  }
  p.in_port = static_cast<std::uint16_t>(in_port);
  out.data[priority].push(p);
  out.queued[priority] += p.bytes;
  out.queued_total += p.bytes;
  if (shared.should_pause(in_port, priority)) {
    shared.ingress(in_port, priority).paused = true;
    send_pfc(node, in_port, priority, true, now);
  }
  kick(out, now);
  out.counters.max_queue = std::max(out.counters.max_queue, out.queued_total);
}

void EventEngine::host_arrival(int host, const Packet& p, Time now) {
  TransportLayer& transport = world_.transport;
  Port& port = port_of(host, 0);
  Nic& nic = nics_[static_cast<std::size_t>(host)];
  if (p.is_data()) {
    Replies replies;
    transport.on_data(p, host, now, replies);
    take_chained();
    for (int i = 0; i < replies.count; ++i) {
      if (i == 0 && replies.cnp_delayed) {
        nic.delayed_cnps.push(replies.packets[i]);
        schedule(What::kDelayedCnp, static_cast<std::uint64_t>(host), now + transport.cnp_delay());
      } else {
        port.control.push(replies.packets[i]);
      }
    }
    kick(port, now);
    return;
  }
  Qp* q = transport.find(p.qp);
  if (!q) return;
  if (p.type() == Kind::kCnp) {
    transport.on_cnp(*q, now);
    kick(port, now);  // a window that follows the rate may have opened
    return;
  }
  const std::uint32_t place = q->nic_slot;
  if (transport.on_ack(*q, p, now)) {
    nic.slots[place] = kNone;
    return;
  }
  if (p.cnp) transport.on_cnp(*q, now);
  kick(port, now);  // a window may have opened, or the sender went back
}

// transfers of a ring that this arrival makes due: they start at the same instant, after arrivals
void EventEngine::take_chained() {
  for (const FlowStart& f : world_.transport.chained) {
    chained_.push(f);
    schedule(What::kFlow, static_cast<std::uint64_t>(f.src), f.start);
  }
  world_.transport.chained.clear();
}

void EventEngine::start_flow(const FlowStart& flow, Time now) {
  const std::uint32_t slot = world_.transport.start_flow(flow, now);
  Qp& q = world_.transport.qp(slot);
  Nic& nic = nics_[static_cast<std::size_t>(flow.src)];
  if (q.nic_slot == kNone) {  // the lowest free place
    std::uint32_t place = 0;
    while (place < nic.slots.size() && nic.slots[place] != kNone) ++place;
    if (place == nic.slots.size()) nic.slots.push_back(kNone);
    nic.slots[place] = slot;
    q.nic_slot = place;
  }
  kick(port_of(flow.src, 0), now);
}

// ---- loss ----

void EventEngine::arm_rto(Qp& q) {
  if (q.rto_armed) return;
  q.rto_armed = true;
  schedule(What::kRto, q.ref, q.rto_at);
}

void EventEngine::on_rto(std::uint32_t ref, Time now) {
  Qp* q = world_.transport.find(ref);
  if (!q) return;
  q->rto_armed = false;
  if (q->unacked == q->next_seq) return;  // nothing in flight: the next packet arms it again
  if (world_.transport.on_rto(*q, now)) {
    wake(port_of(q->src, 0), now);
  } else {
    arm_rto(*q);
  }
}

// ---- settings and reports ----

void EventEngine::settings_changed(Time now) {
  for (int h = 0; h < world_.topology.hosts(); ++h) wake(port_of(h, 0), now);
}

void EventEngine::set_ecn(const std::vector<EcnSetting>& per_port) {
  for (std::size_t i = 0; i < ports_.size(); ++i) ports_[i].ecn = per_port[i];
}

PortSample EventEngine::sample_port(int port, Time now) const {
  return sample_of(ports_[static_cast<std::size_t>(port)], world_.scenario, now);
}

void EventEngine::report_ports(Time now, std::vector<PortReport>& out) {
  out.resize(ports_.size());
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    out[i] = take_report(ports_[i], world_.scenario, now);
  }
}

}  // namespace dcqcn
