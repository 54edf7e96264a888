// A step of the fluid engine: [now, now + step). Ports serve what was there when it began, so that
// bytes take a step for a hop; marks, pauses and waits follow from what stays behind.
#include <algorithm>

#include "fluid/fluid_engine.hpp"
#include "model/base/det_math.hpp"

namespace dcqcn {
namespace {

constexpr double kSurely = 1e9;
constexpr double kNoLimit = 1e9;
constexpr double kNothing = 1;  // byte of a stream in the network that nobody will miss

constexpr std::size_t kFetchedAhead = 8;  // streams whose state is fetched before their turn

// what moves a stream by a step
template <class Stream>
void fetch(const Stream& s) {
  __builtin_prefetch(&s, 1);
  __builtin_prefetch(&s.rate, 1);
  __builtin_prefetch(s.hops, 1);
}

double marking(const EcnSetting& s, double queue) {
  if (queue <= static_cast<double>(s.kmin)) return 0;
  if (queue > static_cast<double>(s.kmax)) return 1;
  return s.slope * (queue - static_cast<double>(s.kmin));
}

}  // namespace

void FluidEngine::step(Time now) {
  stepped_ = now;
  serve_ports();
  move_streams(now);
  pause_ports();
  send_from_hosts(now);
  if (active_.empty()) {
    for (const std::uint32_t id : used_) {
      Port& p = ports_[id];
      p.left = p.queued = p.sent = p.burst = p.bucket = 0;
      p.open = 1;
      p.paused = false;
      p.listed = false;
    }
    used_.clear();
    stepped_ = -1;
    return;
  }
  schedule(What::kStep, now + step_, 0, 0);
}

void FluidEngine::serve_ports() {
  const auto hosts = static_cast<std::uint32_t>(world_.topology.hosts());
  std::size_t kept = 0;
  for (const std::uint32_t id : used_) {
    Port& p = ports_[id];
    if (p.users == 0 && p.queued < 1) {
      p.listed = false;
      p.left = p.queued = p.sent = 0;
      continue;
    }
    used_[kept++] = id;
    if (p.node >= hosts) serve(p);  // what a NIC sends is decided when it is sent
  }
  used_.resize(kept);
  for (const std::uint32_t id : used_) {  // after all have looked at the other direction
    Port& p = ports_[id];
    if (p.node >= hosts) p.sent = 0;
    p.kept = p.drained = 0;
    if (p.open < 1) p.paused_ps += (1 - p.open) * static_cast<double>(step_);
  }
}

// an egress port of a switch, which ACKs of the other direction share
void FluidEngine::serve(Port& p) {
  const double most = std::max(p.per_step * p.open - ack_load_ * ports_[p.reverse].sent, 0.0);
  const double queue = p.queued;
  const double out = std::min(queue, most);
  const double stays = queue - out;
  const double probability = marking(p.ecn, (stays + p.left) / 2);
  p.keep = stays > 0 ? stays / queue : 0;
  p.unmarked = 1 - probability;
  p.speed = std::max(most, p.per_step / 64) / static_cast<double>(step_);
  p.wait = stays / p.speed;
  p.left = stays;
  p.queued = 0;
  p.burst = p.bucket = 0;
  p.max_queue = std::max(p.max_queue, stays);
  p.tx.add(out);
  p.packets.add(out / frame_);
  if (probability > 0) {
    p.marked.add(out * probability / frame_);
    p.marked_bytes.add(out * probability);
    marks_.add(out * probability / frame_);
  }
}

void FluidEngine::move_streams(Time now) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < active_.size(); ++i) {
    const std::uint32_t id = active_[i];
    if (i + kFetchedAhead < active_.size()) fetch(streams_[active_[i + kFetchedAhead]]);
    Stream& s = streams_[id];
    double in = 0, unmarked = 1, wait = 0;
    Port* before = &ports_[s.host_port];
    for (std::uint32_t k = 0; k < s.count; ++k) {
      Hop& hop = s.hops[k];
      Port& p = ports_[hop.port];
      const double stays = hop.bytes * p.keep;
      const double out = hop.bytes - stays;
      hop.bytes = stays + in;
      p.queued += hop.bytes;
      p.sent += out;
      before->kept += stays;
      before->drained += out;
      unmarked *= p.unmarked;
      wait += p.wait;
      in = out;
      before = &p;
    }
    s.wait = wait;
    s.in_network -= in;
    if (in > 0) {
      const double packets = in / frame_;
      delivered_.add(packets * payload_);
      acks_.add(packets / world_.scenario.transport.ack_every);
      hops_.add(packets * 2 * (s.count + 1));
      if (unmarked < 1) mark(s, packets, 1 - unmarked, now);
      sample(s, std::min(packets, s.part_rtts), wait);
    }
    if (s.left <= 0 && s.leaving == 0 && s.in_network < kNothing) {
      close_stream(id);
    } else {
      active_[kept++] = id;
    }
  }
  active_.resize(kept);
}

// The notification point answers the first marked packet after its gap. Packets come evenly, the
// next one in `phase`; each is marked with the probability, so that of an exponential threshold
// every packet takes -ln(1 - probability).
void FluidEngine::mark(Stream& s, double packets, double probability, Time now) {
  const double span = static_cast<double>(step_);
  const double hazard = probability < 1 ? -det_log(1 - probability) : kSurely;
  double at = std::max(0.0, static_cast<double>(s.quiet_until - now));
  while (at < span) {
    const double more = packets * (span - at) / span;
    const double needed = s.phase + s.until_mark / hazard;
    if (more < needed) {
      const double first = std::min(more, s.phase);
      s.phase -= first;
      s.until_mark -= (more - first) * hazard;
      return;
    }
    at += span * needed / packets;
    draw_mark(s);
    const Time when = now + static_cast<Time>(at);
    if (world_.scenario.transport.cnp_scope_port || world_.scenario.transport.cnp_port_gap > 0) {
      schedule(What::kMark, when, s.ref, 0);
      return;
    }
    on_mark(s, when);
    at = std::max(at + 1, static_cast<double>(s.quiet_until - now));
  }
}

void FluidEngine::draw_mark(Stream& s) {
  s.phase = s.draws.uniform();
  s.until_mark = -det_log(1 - s.draws.uniform());
}

// a marked packet has come
void FluidEngine::on_mark(Stream& s, Time when) {
  Qp* q = world_.transport.find(s.ref);
  if (q == nullptr) return;
  if (!world_.transport.marked_bytes(*q, when, s.quiet_until)) return;
  schedule(What::kCnp, when + s.last_hop + s.backward + world_.transport.cnp_delay(), s.ref, 0);
}

void FluidEngine::pause_ports() {
  const int hosts = world_.topology.hosts();
  const auto reserve = static_cast<double>(world_.scenario.pfc.reserve);
  std::fill(shared_.begin(), shared_.end(), 0.0);
  const auto far_switch = [&](const Port& p) {
    return static_cast<int>(ports_[p.reverse].node) - hosts;
  };
  for (const std::uint32_t id : used_) {
    const Port& p = ports_[id];
    if (p.kept > reserve && far_switch(p) >= 0) {
      shared_[static_cast<std::size_t>(far_switch(p))] += p.kept - reserve;
    }
  }
  for (const std::uint32_t id : used_) {
    Port& p = ports_[id];
    p.open = 1;
    if (p.kept > reserve && far_switch(p) >= 0) {
      p.open = open_share(p, static_cast<std::size_t>(far_switch(p)));
    }
    p.paused = p.open < 1;
  }
}

// A port is paused for the part of the next step in which its bytes would not fit under the
// threshold of the switch that it leads to. What it sent in this step is there too by then, and as
// much as now will have left twice.
double FluidEngine::open_share(const Port& p, std::size_t far_switch) const {
  const SharedBuffer& buffer = buffers_[far_switch];
  const auto port = static_cast<unsigned>(world_.topology.port(static_cast<int>(p.reverse)).index);
  const double free = static_cast<double>(buffer.pool()) - shared_[far_switch];
  const double limit = static_cast<double>(world_.scenario.pfc.reserve) +
                       std::max(0.0, free) * buffer.ingress(port, priority_).alpha;
  const double fits = limit - p.kept - p.sent + 2 * p.drained;
  const bool of_host = p.node < static_cast<std::uint32_t>(world_.topology.hosts());
  const double wanted = std::min(of_host ? p.left : p.queued, p.per_step);
  return fits < wanted ? std::max(fits, 0.0) / p.per_step : 1;
}

// of a packet that leaves its sender now: queues grow evenly in a step, but for bursts
double FluidEngine::wait_of(const Stream& s, Time now) const {
  const double done = static_cast<double>(now - stepped_) / static_cast<double>(step_);
  double wait = 0;
  for (std::uint32_t k = 0; k < s.count; ++k) {
    const Port& p = ports_[s.hops[k].port];
    const double even = p.queued - p.burst - p.left;
    const double served = p.speed * static_cast<double>(step_);
    const double burst = p.bucket - p.rate * static_cast<double>(now - p.bucket_at);
    wait += (std::max(0.0, p.left + done * (even - served)) + std::max(0.0, burst)) / p.speed;
  }
  return wait;
}

// bytes that come at once, beside what streams
void FluidEngine::add_burst(Port& p, double bytes, Time now, bool here) {
  const double before = p.bucket - p.rate * static_cast<double>(now - p.bucket_at);
  p.bucket = std::max(0.0, before) + bytes;
  p.bucket_at = now;
  if (here) p.burst += bytes;
}

// bytes per ps that a window lets it send
double FluidEngine::room_of(const Stream& s) const {
  if (!world_.transport.windowed()) return kNoLimit;
  const Qp& q = *world_.transport.find(s.ref);
  if (q.window == kNone) return kNoLimit;
  const double trip = static_cast<double>(s.forward + s.backward) + s.wait;
  return static_cast<double>(q.window) * frame_ / trip;
}

void FluidEngine::send_from_hosts(Time now) {
  std::size_t kept = 0;
  for (const std::uint32_t host : busy_hosts_) {
    std::vector<std::uint32_t>& list = of_host_[host];
    for (const std::uint32_t id : list) fetch(streams_[id]);
    const double wanted = ask_streams(list, now);
    if (list.empty()) continue;
    busy_hosts_[kept++] = host;
    Port& nic = ports_[streams_[list[0]].host_port];
    const double acks = ack_load_ * ports_[nic.reverse].sent;
    const double most = std::max(nic.per_step * nic.open - acks, 0.0);
    nic.left = std::min(wanted, nic.per_step);
    nic.sent = 0;
    const double level = wanted > most ? fair_level(list, most) : wanted;
    for (const std::uint32_t id : list) {
      Stream& s = streams_[id];
      const double bytes = std::min(s.wanted, level);
      if (bytes <= 0) continue;
      const Time from = std::max(s.free_at, now);
      const bool rare = s.wanted <= frame_;  // one packet, and then its gap
      const double rate =
          rare ? std::min(s.rate, room_of(s)) : bytes / static_cast<double>(now + step_ - from);
      send(s, bytes, from, rate, false);
    }
  }
  busy_hosts_.resize(kept);
}

// keeps those that have bytes to send, and asks how many they may
double FluidEngine::ask_streams(std::vector<std::uint32_t>& list, Time now) {
  double wanted = 0;
  std::size_t left = 0;
  for (const std::uint32_t id : list) {
    Stream& s = streams_[id];
    if (s.left <= 0 || !s.live) continue;
    list[left++] = id;
    const double rate = std::min(s.rate, room_of(s));
    s.wanted = wants(s, rate, std::max(s.free_at, now), now + step_);
    wanted += s.wanted;
  }
  list.resize(left);
  return wanted;
}

// Round robin: who wants more than an equal share of `most` gets what the others leave. The most
// that one may send.
double FluidEngine::fair_level(const std::vector<std::uint32_t>& list, double most) const {
  double level = most / static_cast<double>(list.size());
  while (true) {
    double modest = 0;
    std::size_t greedy = 0;
    for (const std::uint32_t id : list) {
      if (streams_[id].wanted <= level) {
        modest += streams_[id].wanted;
      } else {
        ++greedy;
      }
    }
    if (greedy == 0) return level;
    const double next = (most - modest) / static_cast<double>(greedy);
    if (next <= level * 1.000001) return level;
    level = next;
  }
}

// bytes that it may send at this rate in [from, end): a packet goes as a whole when its time has
// come, and the next one its gap later
double FluidEngine::wants(const Stream& s, double rate, Time from, Time end) const {
  if (from >= end) return 0;
  const double bytes = rate * static_cast<double>(end - from);
  return bytes < frame_ ? std::min(s.left, frame_) : bytes;
}

// up to so many bytes from `from` on at this rate, of as many messages as that is
void FluidEngine::send(Stream& s, double bytes, Time from, double rate, bool burst) {
  TransportLayer& transport = world_.transport;
  Qp& q = *transport.find(s.ref);
  double at = static_cast<double>(from);
  double sent = 0;
  while (bytes > 0 && s.left > 0) {
    const double part = std::min(bytes, s.left);
    bytes -= part;
    s.left -= part;
    sent += part;
    const bool last = s.left < 0.5;
    send_part(s, part, static_cast<Time>(at), last);
    s.part_rtts += part / frame_;
    if (last) end_message(s, q, at, part, rate);
    at += part / rate;
    if (!last) break;
  }
  s.free_at = static_cast<Time>(at);
  if (burst) {
    for (std::uint32_t k = 0; k < s.count; ++k) {
      add_burst(ports_[s.hops[k].port], sent, from, k == 0);
    }
  }
  if (s.left <= 0) sample(s, s.part_rtts, wait_of(s, s.free_at));  // later it may be gone
}

// The last `part` of a message leaves from `begun` on, its last packet at line rate.
void FluidEngine::end_message(Stream& s, Qp& q, double begun, double part, double rate) {
  TransportLayer& transport = world_.transport;
  const auto tail = static_cast<double>(tail_of(*transport.message_to_send(q)));
  const double line = ports_[s.host_port].rate;
  const double end = begun + std::max(0.0, part - tail) / rate + tail / line;
  ++s.leaving;
  schedule(What::kSent, static_cast<Time>(end) + 1, s.ref, transport.sent_message(q));
  const Message* next = transport.message_to_send(q);
  s.left = next == nullptr ? 0 : static_cast<double>(transport.wire_bytes_of(*next));
}

// the last packet of a message on the wire
Bytes FluidEngine::tail_of(const Message& m) const {
  const Wire& wire = world_.scenario.wire;
  return (m.bytes - 1) % wire.payload + 1 + wire.data_overhead;
}

// A message has left its sender: when its end comes, and its ACK, is known by the queues as they
// are now.
void FluidEngine::on_sent(Stream& s, std::uint32_t end_seq, Time now) {
  --s.leaving;
  const Message& m = world_.transport.message_ending(s.ref, end_seq);
  const Bytes tail = tail_of(m);
  Time transit = s.forward + static_cast<Time>(wait_of(s, now));
  for (std::uint32_t k = 0; k < s.count; ++k) {
    transit += tail * world_.topology.port(static_cast<int>(s.hops[k].port)).ps_per_byte;
  }
  const Time ideal = m.start + m.ideal;
  Time& last = places_[slot_of(s.ref)].last_arrival;  // never overtaken: a queue pair is one path
  const Time arrival = last = std::max({now + transit, ideal - s.backward, last});
  schedule(What::kArrival, arrival, s.ref, end_seq);
  schedule(What::kAck, std::max(arrival + s.backward, ideal), s.ref, end_seq);
}

// round trips of so many packets, as far as they are whole
void FluidEngine::sample(Stream& s, double packets, double wait) {
  s.part_rtts -= packets;
  s.part_samples += packets;
  const auto count = static_cast<std::uint64_t>(s.part_samples);
  if (count == 0) return;
  Qp* q = world_.transport.find(s.ref);
  if (q == nullptr) return;
  s.part_samples -= static_cast<double>(count);
  const double frames = frame_ * static_cast<double>(s.count + 1) / ports_[s.host_port].rate;
  const Time trip = s.forward + s.backward + static_cast<Time>(frames + wait);
  q->rtt_sum += static_cast<Time>(count) * trip;
  q->rtt_count += count;
}

void FluidEngine::send_part(Stream& s, double bytes, Time end, bool last) {
  TransportLayer& transport = world_.transport;
  Qp& q = *transport.find(s.ref);
  s.hops[0].bytes += bytes;
  s.in_network += bytes;
  ports_[s.hops[0].port].queued += bytes;
  Port& nic = ports_[s.host_port];
  nic.sent += bytes;
  nic.tx.add(bytes);
  nic.packets.add(bytes / frame_);
  s.part_packets += bytes / frame_;
  s.part_payload += bytes / frame_ * payload_;
  BulkSent sent;
  sent.bytes = static_cast<Bytes>(bytes);
  sent.packets = static_cast<std::uint64_t>(s.part_packets);
  sent.payload = static_cast<Bytes>(s.part_payload);
  sent.last = last;
  s.part_packets -= static_cast<double>(sent.packets);
  s.part_payload -= static_cast<double>(sent.payload);
  const Rate pace = transport.sent_bytes(q, sent, end);
  s.rate = static_cast<double>(pace) / 8e12;
  if (world_.monitor.wants_packets() && sent.payload > 0) {
    world_.monitor.record(s.tor, s.flow_key, static_cast<std::uint32_t>(sent.payload));
  }
}

}  // namespace dcqcn
