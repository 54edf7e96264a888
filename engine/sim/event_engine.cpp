#include "sim/event_engine.hpp"

#include "model/fabric/ecn.hpp"
#include "sim/event_loop.hpp"
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
    buffers_.push_back(buffer_of(world, n));
  }
  for (int h = 0; h < t.hosts(); ++h) arm_tick(h);
  arm_jobs();
}

void EventEngine::schedule(What what, std::uint64_t id, Time when) {
  events_.push({when, static_cast<std::uint64_t>(what) << 56 | id});
}

void EventEngine::run(Time until) {
  run_in_order(
      world_.source, events_, starts_, until,
      [this](const FlowStart& f, Time now) { start_flow(f, now); },
      [this](const Event& e) { handle(e); });
}

void EventEngine::handle(const Event& e) {
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
    case What::kTick:
      on_tick(static_cast<int>(id), e.when);
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
    case What::kJob:
      on_job(static_cast<int>(id), e.when);
      break;
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
  const bool at_switch = port.spec.node >= world_.topology.hosts();
  if (p.is_data() || (at_switch && world_.scenario.pfc.in_class(p))) {
    port.counters.tx_bytes += p.bytes;
    ++port.counters.tx_packets;
  }
  if (port.wire.empty()) {
    schedule(What::kArrival, static_cast<std::uint64_t>(port.spec.peer_port), p.arrival);
  }
  port.wire.push(p);
}

bool EventEngine::pick_priority(Port& port, unsigned& priority) const {
  const unsigned ready = port.ready();
  if (!ready) return false;
  const Scenario& scenario = world_.scenario;
  const Bytes frame = scenario.wire.payload + scenario.wire.data_overhead;
  const auto head = [&](unsigned p) { return Bytes{port.data[p].front().bytes}; };
  priority = port.last_served;
  if (scenario.classes.declared) {
    priority = port.deficits.pick(ready, priority, scenario.classes, frame, head);
  } else {
    do priority = (priority + 1) & 7;
    while (!(ready >> priority & 1));
  }
  return true;
}

void EventEngine::transmit_data(Port& port, Time now) {
  const unsigned priority = port.last_served;
  Packet p = port.data[priority].pop();
  port.queued[priority] -= p.bytes;
  port.queued_total -= p.bytes;
  port.deficits.sent(priority, p.bytes, port.data[priority].empty());
  mark_departing(port, world_.scenario.classes.curve(priority, port.ecn), p, port.queued[priority],
                 world_.log.totals);
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
    if (!q.may_send() || port.pause.paused(q.priority)) continue;
    if (q.next_send > now) {
      soonest = std::min(soonest, q.next_send);
      continue;
    }
    nic.last_served = place;
    transmit(port, world_.transport.send(q, now), now);
    if (world_.transport.must_arm(q)) schedule(What::kRto, q.ref, q.rto_at);
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
  if (!port.pause.take(frame.priority, frame.pause, now)) return;
  const int node = port.spec.node;
  if (node < world_.topology.hosts()) {
    world_.transport.on_pause(node, frame.priority, frame.pause, now);
    arm_tick(node);
  }
  if (!frame.pause || world_.transport.windowed()) wake(port, now);
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
  if (!world_.scenario.pfc.in_class(p)) {
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
  if (!shared.admit(in_port, priority, p.bytes, world_.scenario.pfc.may_drop(p))) {
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
  if (p.is_data()) {
    Replies replies;
    transport.on_data(p, host, now, replies);
    take_chained();
    send_replies(host, replies, now);
    arm_tick(host);
    arm_jobs();
    kick(port, now);
    return;
  }
  Qp* q = transport.find(p.qp);
  if (!q) return;
  const Then then = transport.on_control(*q, p, now);
  arm_tick(host);
  arm_jobs();
  if (then == Then::kGone) {
    nics_[static_cast<std::size_t>(host)].slots[q->nic_slot] = kNone;
  } else {
    kick(port, now);
  }
}

void EventEngine::send_replies(int host, const Replies& replies, Time now) {
  replies.hand_over(
      [&](const Packet& cnp) {
        nics_[static_cast<std::size_t>(host)].delayed_cnps.push(cnp);
        schedule(What::kDelayedCnp, static_cast<std::uint64_t>(host),
                 now + world_.transport.cnp_delay());
      },
      [&](const Packet& p) { port_of(host, 0).control.push(p); });
}

// ---- the NIC's scheme ----

void EventEngine::arm_tick(int host) {
  Nic& nic = nics_[static_cast<std::size_t>(host)];
  const Time next = world_.transport.next_tick(host);
  if (next >= nic.tick_due) return;
  nic.tick_due = next;
  schedule(What::kTick, static_cast<std::uint64_t>(host), next);
}

void EventEngine::on_tick(int host, Time now) {
  Nic& nic = nics_[static_cast<std::size_t>(host)];
  if (nic.tick_due == now) nic.tick_due = kNever;
  if (world_.transport.next_tick(host) == now) {
    Replies replies;
    world_.transport.tick(host, now, replies);
    send_replies(host, replies, now);
    wake(port_of(host, 0), now);
  }
  arm_tick(host);
}

// ---- jobs ----

void EventEngine::arm_jobs() {
  arm_woken(
      world_.source.jobs(), [this](std::size_t host) -> Time& { return nics_[host].job_due; },
      [this](int host, Time when) {
        schedule(What::kJob, static_cast<std::uint64_t>(host), when);
      });
}

void EventEngine::on_job(int host, Time now) {
  Jobs& jobs = world_.source.jobs();
  Nic& nic = nics_[static_cast<std::size_t>(host)];
  if (nic.job_due != now) return;  // an earlier one took its place
  nic.job_due = kNever;
  starts_.clear();
  jobs.happen(host, starts_);
  for (const FlowStart& f : starts_) start_flow(f, now);
  jobs.woken().push_back(host);
  arm_jobs();
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
  arm_tick(flow.src);
  kick(port_of(flow.src, 0), now);
}

// ---- loss ----

void EventEngine::on_rto(std::uint32_t ref, Time now) {
  Qp* q = world_.transport.find(ref);
  if (!q) return;
  const Then then = world_.transport.on_timer(*q, now);
  if (then == Then::kArm) schedule(What::kRto, ref, q->rto_at);
  if (then == Then::kLookAgain) wake(port_of(q->src, 0), now);
}

// ---- settings and reports ----

void EventEngine::settings_changed(Time now) {
  for (int h = 0; h < world_.topology.hosts(); ++h) wake(port_of(h, 0), now);
}

void EventEngine::set_ecn(const std::vector<EcnSetting>& per_port) {
  set_curves([this](std::size_t i) -> Port& { return ports_[i]; }, per_port);
  set_alphas([this](int node) -> SharedBuffer& { return buffer(node); }, world_.topology, per_port);
}

PortSample EventEngine::sample_port(int port, Time now) const {
  return sample_of(ports_[static_cast<std::size_t>(port)], world_.scenario, now);
}

void EventEngine::report_ports(Time now, std::vector<PortReport>& out) {
  take_reports([this](std::size_t i) -> Port& { return ports_[i]; }, world_, now, out);
}

}  // namespace dcqcn
