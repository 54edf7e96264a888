#include "fluid/fluid_engine.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "sim/event_loop.hpp"
#include "sim/port_reports.hpp"

namespace dcqcn {
namespace {

constexpr Time kLongestStep = 5 * kPicosPerMicro;
constexpr Time kShortestStep = kPicosPerMicro;

[[noreturn]] void not_in_fluid(const std::string& what) {
  throw std::invalid_argument("the fluid engine has no " + what +
                              "; expected the packet engine for it (backend native)");
}

}  // namespace

FluidEngine::FluidEngine(const World& world)
    : world_(world),
      step_(std::clamp(world.topology.smallest_delay(), kShortestStep, kLongestStep)),
      frame_(static_cast<double>(world.scenario.wire.payload + world.scenario.wire.data_overhead)),
      payload_(static_cast<double>(world.scenario.wire.payload)),
      ack_load_(static_cast<double>(world.scenario.wire.ack) /
                (frame_ * world.scenario.transport.ack_every)),
      of_host_(static_cast<std::size_t>(world.topology.hosts())),
      job_due_(of_host_.size(), kNever) {
  check();
  if (!world.scenario.workloads.empty()) priority_ = world.scenario.workloads.front().priority;
  const Topology& t = world.topology;
  ports_.resize(static_cast<std::size_t>(t.port_count()));
  for (int i = 0; i < t.port_count(); ++i) {
    Port& p = ports_[static_cast<std::size_t>(i)];
    p.rate = 1.0 / static_cast<double>(t.port(i).ps_per_byte);
    p.per_step = p.rate * static_cast<double>(step_);
    p.reverse = static_cast<std::uint32_t>(t.port(i).peer_port);
    p.node = static_cast<std::uint32_t>(t.port(i).node);
  }
  for (int n = t.hosts(); n < t.nodes(); ++n) {
    buffers_.push_back(buffer_of(world, n));
  }
  shared_.resize(buffers_.size());
  arm_jobs();
}

void FluidEngine::check() const {
  const Scenario& s = world_.scenario;
  for (const SchemeSpec& scheme : s.schemes) {
    if (scheme.name != "dcqcn") not_in_fluid("scheme " + scheme.name);
  }
  if (s.classes.tcp != 0) not_in_fluid("TCP");
  if (s.classes.declared) not_in_fluid("classes");
  if (s.pfc.acks_as_data != 0) not_in_fluid("ACKs in the class of their data (ack_class)");
  for (const WorkloadSpec& w : s.workloads) {
    if (w.priority != s.workloads.front().priority) not_in_fluid("workloads of several priorities");
  }
  if (world_.transport.lossy()) not_in_fluid("loss: PFC is off, or headroom is too small");
  if (world_.monitor.wants_packets() && !world_.monitor.takes_runs()) {
    not_in_fluid("monitor that has to see every packet");
  }
}

void FluidEngine::schedule(What what, Time when, std::uint32_t ref, std::uint32_t seq) {
  events_.push({when, ref, seq, static_cast<std::uint64_t>(what) << 56 | order_++});
}

void FluidEngine::run(Time until) {
  run_in_order(
      world_.source, events_, starts_, until,
      [this](const FlowStart& f, Time now) { start_flow(f, now); },
      [this](const Event& e) { handle(e); });
}

void FluidEngine::handle(const Event& e) {
  TransportLayer& transport = world_.transport;
  switch (static_cast<What>(e.order >> 56)) {
    case What::kSent:
      if (Stream* s = stream_of(e.ref)) on_sent(*s, e.seq, e.when);
      break;
    case What::kMark:
      if (Stream* s = stream_of(e.ref)) on_mark(*s, e.when);
      break;
    case What::kCnp:
      on_cnp(e.ref, e.when);
      break;
    case What::kArrival:
      if (Qp* q = transport.find(e.ref)) transport.message_arrived(*q, e.seq, e.when);
      take_chained();
      arm_jobs();
      break;
    case What::kAck:
      if (Qp* q = transport.find(e.ref)) transport.message_acked(*q, e.seq, e.when);
      arm_jobs();
      break;
    case What::kJob:
      on_job(static_cast<int>(e.ref), e.when);
      break;
    case What::kFlow:
      start_flow(chained_.pop(), e.when);
      break;
    case What::kStep:
      step(e.when);
      break;
  }
}

// ---- flows ----

void FluidEngine::use_port(std::uint32_t port) {
  Port& p = ports_[port];
  ++p.users;
  if (p.listed) return;
  p.listed = true;
  p.keep = p.wait = p.left = 0;
  p.unmarked = p.open = 1;
  p.speed = p.rate;
  used_.push_back(port);
}

FluidEngine::Stream* FluidEngine::stream_of(std::uint32_t ref) {
  const std::uint32_t slot = slot_of(ref);
  if (slot >= places_.size() || places_[slot].stream == kNoStream) return nullptr;
  Stream& s = streams_[places_[slot].stream];
  return s.live && s.ref == ref ? &s : nullptr;
}

std::uint32_t FluidEngine::open_stream(const Qp& q) {
  std::uint32_t id = static_cast<std::uint32_t>(streams_.size());
  if (free_.empty()) {
    streams_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  Stream& s = streams_[id];
  s = Stream{};
  s.ref = q.ref;
  s.host = q.src;
  s.live = true;
  const Topology& t = world_.topology;
  const Wire& wire = world_.scenario.wire;
  const std::vector<int> path = t.path(q.src, q.dst, q.entropy);
  if (path.size() - 1 > kMostHops) not_in_fluid("path over more than 8 switches");
  s.host_port = static_cast<std::uint32_t>(path[0]);
  for (const int p : path) {
    s.forward += t.port(p).delay;
    s.backward += t.port(p).delay + wire.ack * t.port(p).ps_per_byte;
    use_port(static_cast<std::uint32_t>(p));
    use_port(ports_[static_cast<std::size_t>(p)].reverse);
  }
  for (std::size_t i = 1; i < path.size(); ++i) {
    s.hops[s.count++].port = static_cast<std::uint32_t>(path[i]);
    s.last_hop = t.port(path[i]).delay;
  }
  s.tor = static_cast<int>(t.port(path[path.size() > 1 ? 1 : 0]).node) - t.hosts();
  s.flow_key = world_.transport.flow_key(q.ref);
  s.draws = RandomStream(world_.seed, Purpose::kMarking,
                         std::uint64_t{1} << 40 | static_cast<std::uint64_t>(s.flow_key));
  draw_mark(s);
  s.rate = static_cast<double>(world_.transport.pacing(q)) / 8e12;
  const std::uint32_t slot = slot_of(q.ref);
  if (slot >= places_.size()) places_.resize(slot + 1);
  places_[slot].stream = id;
  active_.push_back(id);
  return id;
}

void FluidEngine::close_stream(std::uint32_t id) {
  Stream& s = streams_[id];
  s.live = false;
  --ports_[s.host_port].users;
  --ports_[ports_[s.host_port].reverse].users;
  for (std::uint32_t k = 0; k < s.count; ++k) {
    --ports_[s.hops[k].port].users;
    --ports_[ports_[s.hops[k].port].reverse].users;
  }
  const std::uint32_t slot = slot_of(s.ref);
  if (places_[slot].stream == id) places_[slot].stream = kNoStream;
  free_.push_back(id);
}

void FluidEngine::start_flow(const FlowStart& flow, Time now) {
  if (stepped_ < 0) {
    stepped_ = now / step_ * step_;
    schedule(What::kStep, stepped_ + step_, 0, 0);
  }
  TransportLayer& transport = world_.transport;
  Qp& q = transport.qp(transport.start_flow(flow, now));
  Stream* s = stream_of(q.ref);
  if (s == nullptr) s = &streams_[open_stream(q)];
  if (s->left > 0) return;  // its turn comes after those before it
  s->left = static_cast<double>(transport.wire_bytes_of(*transport.message_to_send(q)));
  s->free_at = std::max({s->free_at, now, q.next_send});
  std::vector<std::uint32_t>& list = of_host_[s->host];
  if (list.empty()) busy_hosts_.push_back(s->host);
  list.push_back(static_cast<std::uint32_t>(s - streams_.data()));
  const Time end = stepped_ + step_;
  if (s->free_at >= end) return;
  const Port& nic = ports_[s->host_port];
  const double share = nic.rate * nic.open / static_cast<double>(list.size());
  const double rate = std::min(std::min(s->rate, share), room_of(*s));
  send(*s, wants(*s, rate, s->free_at, end), s->free_at, rate, true);
}

void FluidEngine::take_chained() {
  for (const FlowStart& f : world_.transport.chained) {
    chained_.push(f);
    schedule(What::kFlow, f.start, static_cast<std::uint32_t>(f.src), 0);
  }
  world_.transport.chained.clear();
}

void FluidEngine::on_cnp(std::uint32_t ref, Time now) {
  Qp* q = world_.transport.find(ref);
  if (q == nullptr) return;
  world_.transport.cnp_arrived(*q, now);
  if (Stream* s = stream_of(ref)) {
    s->rate = static_cast<double>(world_.transport.pacing(*q)) / 8e12;
  }
}

// ---- jobs ----

void FluidEngine::arm_jobs() {
  arm_woken(
      world_.source.jobs(), [this](std::size_t host) -> Time& { return job_due_[host]; },
      [this](int host, Time when) {
        schedule(What::kJob, when, static_cast<std::uint32_t>(host), 0);
      });
}

void FluidEngine::on_job(int host, Time now) {
  Jobs& jobs = world_.source.jobs();
  Time& pending = job_due_[static_cast<std::size_t>(host)];
  if (pending != now) return;  // an earlier one took its place
  pending = kNever;
  std::vector<FlowStart> starts;
  jobs.happen(host, starts);
  for (const FlowStart& f : starts) start_flow(f, now);
  jobs.woken().push_back(host);
  arm_jobs();
}

// ---- settings and reports ----

void FluidEngine::set_ecn(const std::vector<EcnSetting>& per_port) {
  set_curves([this](std::size_t i) -> Port& { return ports_[i]; }, per_port);
  set_alphas(
      [this](int node) -> SharedBuffer& {
        return buffers_[static_cast<std::size_t>(node - world_.topology.hosts())];
      },
      world_.topology, per_port);
  for (const std::uint32_t id : active_) {
    Stream& s = streams_[id];
    if (Qp* q = world_.transport.find(s.ref)) {
      s.rate = static_cast<double>(world_.transport.pacing(*q)) / 8e12;
    }
  }
}

PortSample FluidEngine::sample_port(int port, Time now) const {
  const Port& p = ports_[static_cast<std::size_t>(port)];
  const double most = static_cast<double>(now - interval_begin_);
  return {static_cast<Bytes>(p.left),
          static_cast<Bytes>(p.tx.grown) - static_cast<Bytes>(p.tx.taken),
          std::min(p.paused_ps, most), p.paused};
}

void FluidEngine::report_ports(Time now, std::vector<PortReport>& out) {
  out.resize(ports_.size());
  const double most = static_cast<double>(now - interval_begin_);
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    Port& p = ports_[i];
    PortReport& report = out[i];
    report = {};
    PortCounters& c = report.counters;
    c.tx_bytes = static_cast<Bytes>(p.tx.take());
    c.tx_packets = p.packets.take();
    c.marked_packets = std::min(p.marked.take(), c.tx_packets);
    c.marked_bytes = std::min(static_cast<Bytes>(p.marked_bytes.take()), c.tx_bytes);
    report.queue = static_cast<Bytes>(p.left);
    c.max_queue = std::max(static_cast<Bytes>(p.max_queue), report.queue);
    p.max_queue = p.left;
    report.pause = std::min(p.paused_ps, most) / lossless_count(world_.scenario);
    p.paused_ps -= std::min(p.paused_ps, most);
  }
  Totals& totals = world_.log.totals;
  totals.marks += marks_.take();
  totals.hops += hops_.take();
  totals.acks += acks_.take();
  totals.delivered += static_cast<Bytes>(delivered_.take());
  interval_begin_ = now;
}

void FluidEngine::visit(Archive& a) {
  a.all<FluidEngine>(BuiltPointer{}, built(world_), built(step_), built(frame_), built(payload_),
                     built(ack_load_), built(priority_), events_, order_, stepped_, ports_, used_,
                     buffers_, shared_, streams_, free_, places_, of_host_, busy_hosts_, active_,
                     job_due_, built(starts_), chained_, interval_begin_, marks_, hops_, delivered_,
                     acks_);
}

}  // namespace dcqcn
