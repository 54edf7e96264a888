#include "sim/window_engine.hpp"

#include <algorithm>

#include "sim/port_reports.hpp"

namespace dcqcn {

namespace {

static_assert(kMostPorts == 1 << ArrivalKey::kPortBits);

std::vector<unsigned> priorities_of(const Scenario& scenario) {
  unsigned bits = scenario.workloads.empty();  // without any no packet is ever seen
  for (const WorkloadSpec& w : scenario.workloads) bits |= 1u << w.priority;
  std::vector<unsigned> found;
  for (unsigned p = 0; p < kPriorities; ++p) {
    if (bits >> p & 1) found.push_back(p);
  }
  return found;
}

std::uint32_t kinds_in_class(const PfcConfig& pfc) {
  std::uint32_t bits = 0;
  for (unsigned i = 0; i < 4 * kPriorities; ++i) {
    Packet p{};
    p.kind = i / kPriorities;
    p.priority = i % kPriorities;
    bits |= std::uint32_t{pfc.in_class(p)} << i;
  }
  return bits;
}

// In a storm a look at all packets on the links hardly ever says that PFC cannot fire in two
// windows.
constexpr std::uint32_t kApart = 15;

// a link brings no more packets in two windows than ArrivalKey can number
Time longest_window(const World& world) {
  const Wire& wire = world.scenario.wire;
  const Bytes smallest = std::min({wire.ack, wire.cnp, wire.data_overhead + 1});
  Time fastest = kNever;
  for (const LinkSpec& l : world.scenario.links) fastest = std::min(fastest, l.ps_per_byte);
  return smallest * fastest * ((1 << ArrivalKey::kPlaceBits) - 1) / 2;
}

// so soon at the earliest what happens at one host makes another one start something
Time soonest_reaction(const World& world) {
  Time soonest = kNever;
  const auto waits = [](Pattern p) {
    return p == Pattern::kStorage || p == Pattern::kParameterServer || p == Pattern::kJob;
  };
  for (const WorkloadSpec& w : world.scenario.workloads) {
    const bool known = w.pattern == Pattern::kPoisson || w.pattern == Pattern::kFlows ||
                       w.pattern == Pattern::kStreams;
    if (known || (!waits(w.pattern) && w.rounds == 1)) continue;
    soonest = std::min(soonest, waits(w.pattern) ? 0 : w.off);
  }
  return std::max(soonest, world.topology.smallest_delay());
}

}  // namespace

WindowEngine::WindowEngine(const World& world, std::size_t threads, Time max_window, bool always)
    : world_(world),
      window_(std::min({world.topology.smallest_delay(), max_window, longest_window(world)})),
      max_packet_(world.scenario.wire.payload + world.scenario.wire.data_overhead),
      priorities_(priorities_of(world.scenario)),
      priority_(priorities_.front()),
      one_priority_(priorities_.size() == 1),
      weighted_(world.scenario.classes.declared != 0),
      control_waits_(world.scenario.pfc.acks_as_data != 0),
      in_class_(kinds_in_class(world.scenario.pfc)),
      nics_(static_cast<std::size_t>(world.topology.hosts())),
      wakes_(static_cast<std::size_t>(world.topology.nodes()), kNever),
      least_awake_(always ? 0 : 8 * threads) {
  build_ports();
  build_nodes();
  make_lanes(threads);
  host_window_ = std::min(window_ + lead_, soonest_reaction(world));
  for (std::uint32_t h = 0; h < nics_.size(); ++h) update_wake(h, host_wake(h, nics_[h]));
  wake_for_jobs();
}

void WindowEngine::build_ports() {
  const Topology& t = world_.topology;
  ports_ = std::vector<Port>(static_cast<std::size_t>(t.port_count()));
  for (int i = 0; i < t.port_count(); ++i) {
    Port& port = ports_[static_cast<std::size_t>(i)];
    port.ps_per_byte = t.port(i).ps_per_byte;
    port.delay = t.port(i).delay;
    port.peer_node = static_cast<std::uint32_t>(t.peer_node(i));
    port.draws = RandomStream(world_.seed, Purpose::kMarking, static_cast<std::uint64_t>(i));
  }
}

void WindowEngine::build_nodes() {
  const Topology& t = world_.topology;
  const auto peer = [&](int global) {
    return &ports_[static_cast<std::size_t>(t.port(global).peer_port)];
  };
  for (int h = 0; h < t.hosts(); ++h) {
    nics_[static_cast<std::size_t>(h)].port = &ports_[static_cast<std::size_t>(t.first_port(h))];
    nics_[static_cast<std::size_t>(h)].from = peer(t.first_port(h));
  }
  for (int n = t.hosts(); n < t.nodes(); ++n) {
    Switch& sw = switches_.emplace_back();
    sw.ports = &ports_[static_cast<std::size_t>(t.first_port(n))];
    sw.degree = static_cast<std::uint32_t>(t.degree(n));
    for (int p = t.first_port(n); p < t.first_port(n + 1); ++p) {
      sw.from.push_back(peer(p));
      sw.from_host.push_back(t.peer_node(p) < t.hosts());
      sw.window_bytes.push_back(window_ / t.port(p).ps_per_byte + max_packet_);
    }
    sw.buffer = buffer_of(world_, n);
  }
}

Time WindowEngine::earliest_wake() const { return *std::min_element(wakes_.begin(), wakes_.end()); }

void WindowEngine::hand_out_flows(Time end) {
  if (world_.source.next_time() >= end) return;
  flows_.clear();
  world_.source.take_until(end, flows_);
  for (const FlowStart& f : flows_) {
    nics_[static_cast<std::size_t>(f.src)].starts.push(f);
    update_wake(static_cast<std::uint32_t>(f.src), f.start);
  }
}

// what one host does may make others due, in later windows
void WindowEngine::wake_for_jobs() {
  Jobs& jobs = world_.source.jobs();
  for (const int host : jobs.woken()) update_wake(static_cast<std::uint32_t>(host), jobs.due(host));
  jobs.woken().clear();
}

void WindowEngine::run_switch(Lane& lane, std::uint32_t s, Time begin, Time end) {
  if (wakes_[nics_.size() + s] >= end) return;
  Switch& sw = switches_[s];
  const bool two = end - begin > window_;
  const bool look = !two || sw.apart == 0;
  if (pfc_cannot_fire(sw, begin, end, look)) {
    run_switch_fast(lane, s, begin, end);
  } else if (two) {  // perhaps it cannot in one of them
    sw.apart = look ? kApart : sw.apart - 1;
    run_switch(lane, s, begin, begin + window_);
    run_switch(lane, s, begin + window_, end);
  } else {
    run_switch_ordered(lane, s, begin, end);
  }
}

void WindowEngine::run_colour(int colour, Time begin, Time end) {
  if (begin >= end) return;
  if (crew_ && worth_sharing(end)) return run_colour_shared(colour, begin, end);
  for (const std::uint32_t s : switches_of_[colour]) run_switch(lanes_[0], s, begin, end);
  if (colour == 0) run_hosts(begin, end);
}

void WindowEngine::run_hosts(Time begin, Time end) {
  for (Time next; begin < end; begin = next) {
    next = std::min(begin + host_window_, end);
    hand_out_flows(next);
    for (std::uint32_t h = 0; h < nics_.size(); ++h) {
      if (wakes_[h] < next) run_host(lanes_[0], h, begin, next);
    }
    wake_for_jobs();
  }
}

void WindowEngine::run(Time until) {
  // Where the two colours stand. One has lead_ before the other and is passed by it: what reaches a
  // node comes from the other colour, and takes a link's delay.
  Time hosts = now_, others = now_;
  while (true) {
    // nothing happens before the earliest wake: the windows may begin there
    const Time first = std::min(earliest_wake(), world_.source.next_time());
    if (first >= std::max(hosts, others)) hosts = others = first;
    if (std::min(hosts, others) >= until) break;
    const Time next = std::min(hosts + window_, until);
    run_colour(1, others, next);
    others = next;
    const Time last = std::min(others + lead_, until);
    run_colour(0, hosts, last);
    hosts = last;
  }
  now_ = until;
  for (Lane& lane : lanes_) world_.log.totals.add(std::exchange(lane.totals, {}));
  world_.transport.gather_totals();
}

void WindowEngine::settings_changed(Time now) {
  for (std::uint32_t h = 0; h < nics_.size(); ++h) {
    Nic& nic = nics_[h];
    reconsider_idle(nic);
    update_wake(h, std::max(now, host_wake(h, nic)));
  }
}

void WindowEngine::set_ecn(const std::vector<EcnSetting>& per_port) {
  set_curves([this](std::size_t i) -> Port& { return ports_[i]; }, per_port);
  const auto hosts = static_cast<std::size_t>(world_.topology.hosts());
  const auto buffer_of = [this, hosts](int node) -> SharedBuffer& {
    return switches_[static_cast<std::size_t>(node) - hosts].buffer;
  };
  set_alphas(buffer_of, world_.topology, per_port);
}

PortSample WindowEngine::sample_port(int port, Time now) const {
  return sample_of(ports_[static_cast<std::size_t>(port)], world_.scenario, now);
}

void WindowEngine::report_ports(Time now, std::vector<PortReport>& out) {
  take_reports([this](std::size_t i) -> Port& { return ports_[i]; }, world_, now, out);
}

}  // namespace dcqcn
