#include "model/flows/transport.hpp"

#include <stdexcept>

#include "model/flows/flow_table.hpp"

namespace dcqcn {
namespace {

bool can_lose(const Scenario& scenario) {
  for (const WorkloadSpec& w : scenario.workloads) {
    if (scenario.can_lose(w.priority)) return true;
  }
  return !scenario.pfc.enabled;
}

inline constexpr Time kNackAgain = 500 * kPicosPerMicro;
// a closed TCP connection's number is not taken again while its packets may be on their way: which
// of two hosts asks first differs between engines
inline constexpr Time kLinger = 1'000'000 * kPicosPerMicro;

}  // namespace

TransportLayer::TransportLayer(const Scenario& scenario, const Topology& topology,
                               FlowSource& source, IntervalLog& log)
    : scenario_(scenario),
      topology_(topology),
      source_(source),
      log_(log),
      wire_(scenario.wire),
      transport_(scenario.transport),
      lossy_(can_lose(scenario)),
      schemes_(scenario, receivers_),
      windowed_(transport_.window > 0 || schemes_.any(&Scheme::windowed) || scenario.classes.tcp),
      ticks_(schemes_.any(&Scheme::ticks)),
      hears_data_(schemes_.any(&Scheme::hears_data)),
      hears_acks_(schemes_.any(&Scheme::hears_acks)),
      writes_acks_(schemes_.any(&Scheme::writes_acks)),
      hears_pauses_(schemes_.any(&Scheme::hears_pauses)),
      hears_ends_(schemes_.any(&Scheme::hears_ends)),
      next_ordinal_(static_cast<std::size_t>(scenario.hosts), 0),
      tick_at_(next_ordinal_.size(), kNever),
      tcp_classes_(scenario.classes.tcp) {
  for (int h = 0; h < scenario.hosts; ++h) {
    line_.push_back(rate_of(topology.port(topology.first_port(h)).ps_per_byte));
    note_tick(h, -1);
  }
}

void TransportLayer::change_settings(const NicSettings& settings, Time now) {
  for (Qp& q : qps_) {
    if (!q.live || is_tcp(q.priority)) continue;
    const Pace pace = schemes_.change_setting(q.src, slot_of(q.ref), settings, now);
    set_pace(q, pace);
    let_rest(q, pace);
  }
  schemes_.put_in_force(settings);
}

std::uint32_t TransportLayer::free_slot(Time now) {
  if (!retired_.empty() && retired_.front().when <= now) {
    free_qps_.push_back(retired_.pop().slot);
  }
  if (!free_qps_.empty()) {
    const std::uint32_t slot = free_qps_.back();
    free_qps_.pop_back();
    return slot;
  }
  const auto slot = static_cast<std::uint32_t>(qps_.size());
  if (slot > kSlotMask) throw std::runtime_error("more than 4,194,304 queue pairs at once");
  qps_.emplace_back();
  receivers_.emplace_back();
  flow_keys_.push_back(0);
  qps_[slot].ref = slot;
  return slot;
}

std::uint32_t TransportLayer::open_qp(const FlowStart& flow, std::uint32_t ordinal, Time now) {
  const std::uint32_t slot = free_slot(now);
  Qp& q = qps_[slot];
  const std::uint32_t ref = q.ref + (1u << kSlotBits);  // next generation
  q = Qp{};
  if (transport_.rtt_probe > 0) {
    probe_at_.resize(qps_.size());
    probe_at_[slot] = 0;
  }
  q.ref = ref;
  q.live = true;
  q.src = static_cast<std::uint16_t>(flow.src);
  q.dst = static_cast<std::uint16_t>(flow.dst);
  q.priority = static_cast<std::uint8_t>(flow.priority);
  q.entropy = topology_.entropy(flow.src, flow.dst, ordinal, false);
  flow_keys_[slot] = flow_key_of(static_cast<std::uint32_t>(flow.src), ordinal);
  const bool kept = transport_.qp_per_pair || flow.bytes == kUnlimited;
  receivers_[slot] = QpReceiver{};
  receivers_[slot].ref = ref;
  receivers_[slot].src = q.src;
  receivers_[slot].workload = flow.workload;
  receivers_[slot].messages_left = kept ? 0 : flow.messages;
  receivers_[slot].entropy = topology_.entropy(flow.src, flow.dst, ordinal, true);
  receivers_[slot].priority = static_cast<std::uint16_t>(flow.priority);
  if (is_tcp(q.priority)) {
    start_tcp(q);
  } else {
    start_scheme(q, flow.workload, flow.connection, now);
  }
  return slot;
}

void TransportLayer::start_scheme(Qp& q, std::uint32_t workload, std::uint16_t number, Time now) {
  const std::uint32_t slot = slot_of(q.ref);
  Scheme& sender = schemes_.of(q.src);
  Scheme& receiver = schemes_.of(q.dst);
  const Connection connection{
      q.ref, q.src, q.dst, workload, q.priority, line_[q.src], &sender == &receiver, number};
  sender.open(slot, connection);
  if (!connection.same_ends) receiver.open(slot, connection);
  const Pace pace = sender.start(slot, now);
  set_pace(q, pace);
  let_rest(q, pace);
  note_tick(q.src, now);
}

// in packets: one more may start while what is in flight is below the window in bytes
std::uint32_t TransportLayer::window_of(const Qp& q) const {
  if (is_tcp(q.priority)) return tcp_[slot_of(q.ref)].sender.packets();
  Bytes window = transport_.window;
  const Scheme& scheme = schemes_.of(q.src);
  if (scheme.windowed) {
    window = scheme.window(slot_of(q.ref));
  } else if (transport_.window_scales) {
    const double share = static_cast<double>(q.rate) / static_cast<double>(line_[q.src]);
    window = std::max<Bytes>(1, static_cast<Bytes>(static_cast<double>(window) * share));
  }
  if (window == 0) return kNone;
  return static_cast<std::uint32_t>(
      std::min<Bytes>((window + wire_.payload - 1) / wire_.payload, kNone));
}

void TransportLayer::tell_ack(Qp& q, const Packet& p, Time now) {
  q.resting = false;
  const std::int32_t fresh = static_cast<std::int32_t>(p.seq - q.unacked);
  const Acked acked{p.type() == Kind::kAck ? now - static_cast<Time>(p.sent) : 0,
                    static_cast<std::uint32_t>(std::max(fresh, 0))};
  set_pace(q, schemes_.of(q.src).on_ack(slot_of(q.ref), acked, static_cast<Time>(p.sent), now));
}

bool TransportLayer::on_ack(Qp& q, const Packet& p, Time now) {
  if (is_tcp(q.priority)) {
    on_tcp_ack(q, p, now);
    return end_if_idle(q, now);
  }
  if (hears_acks_) tell_ack(q, p, now);
  if (p.type() == Kind::kAck) take_rtt(q, static_cast<Time>(p.sent), now);
  // sequence numbers wrap: compare by signed distance
  if (static_cast<std::int32_t>(p.seq - q.unacked) > 0) {
    if (lossy_) q.rto_at = now + transport_.rto;
    take_acked(q, p.seq, now);
  }
  if (p.type() == Kind::kNack) {
    totals(q.src).retransmitted += q.next_seq - q.unacked;
    go_back(q);
    on_loss(q, now);
  }
  return end_if_idle(q, now);
}

// true if nothing is left to do, and the queue pair gone
bool TransportLayer::end_if_idle(Qp& q, Time now) {
  if (q.first_message != kNone || transport_.qp_per_pair) return false;
  flush_rtt(q);
  q.live = false;
  if (is_tcp(q.priority)) {
    retired_.push({now + kLinger, slot_of(q.ref)});
    return true;
  }
  schemes_.of(q.src).end(slot_of(q.ref));
  note_tick(q.src, now);
  free_qps_.push_back(slot_of(q.ref));
  return true;
}

void TransportLayer::complete(Qp& q, Message& m, Time now) {
  log_.finished.push_back(
      {q.src, q.dst, m.ordinal, m.workload, m.bytes, m.start, now - m.start, m.ideal});
  source_.finished(m.workload, m.tag, q.src, now);
  if (hears_acks_ && !is_tcp(q.priority)) {
    q.resting = false;
    set_pace(q, schemes_.of(q.src).on_message(slot_of(q.ref), {m.bytes, m.start, m.ideal}, now));
  }
  --live_messages_;
  free_messages_.push_back(q.first_message);
  if (q.send_message == q.first_message) q.send_message = m.next;
  q.first_message = m.next;
  if (q.first_message == kNone) {
    q.last_message = kNone;
  } else {
    q.message_end = messages_[q.first_message].end_seq;
  }
}

void TransportLayer::go_back(Qp& q) {
  q.next_seq = q.unacked;
  q.send_message = q.first_message;
}

bool TransportLayer::on_rto(Qp& q, Time now) {
  if (q.unacked == q.next_seq || now < q.rto_at) return false;
  if (is_tcp(q.priority)) {
    on_tcp_timeout(q, now);
    return true;
  }
  totals(q.src).retransmitted += q.next_seq - q.unacked;
  go_back(q);
  on_loss(q, now);
  q.rto_at = now + transport_.rto;
  return true;
}

Then TransportLayer::on_timer(Qp& q, Time now) {
  q.rto_armed = false;
  if (q.unacked == q.next_seq) return Then::kNothing;  // the next packet arms it again
  if (on_rto(q, now)) return Then::kLookAgain;
  q.rto_armed = true;
  return Then::kArm;
}

// the message that has just come to its end; its sender keeps it until the ACK is back
std::uint32_t TransportLayer::tag_of_arrived(const QpReceiver& r) const {
  std::uint32_t m = qps_[slot_of(r.ref)].first_message;
  while (messages_[m].end_seq != r.expected) m = messages_[m].next;
  return messages_[m].tag;
}

void TransportLayer::add_cnp(const QpReceiver& r, Time now, Replies& replies) {
  add_reply(r, {Kind::kCnp, wire_.cnp, static_cast<std::uint64_t>(now)}, replies);
  replies.cnp_delayed = transport_.cnp_delay > 0;
}

// does the scheme answer this packet with a CNP? One on its own, or in the ACK if there is one.
[[gnu::noinline]] bool TransportLayer::wants_cnp(QpReceiver& r, const Packet& p, int host,
                                                 bool in_order, bool may_answer, Time now) {
  const Arrived arrived{payload_of(p), p.ecn != 0, in_order, r.complete};
  const Time key = static_cast<Time>(p.sent);
  const Answer answer = schemes_.of(host).on_data(slot_of(p.qp), host, arrived, may_answer, key,
                                                  wire_.cnp_in_ack ? key : now, now);
  r.quiet_until = answer.quiet_until;
  totals(host).cnps += answer.cnp;
  note_tick(host, now);
  return answer.cnp;
}

void TransportLayer::on_data(const Packet& p, int host, Time now, Replies& replies) {
  replies.count = 0;
  replies.cnp_delayed = false;
  QpReceiver& r = receivers_[slot_of(p.qp)];
  if (r.ref != p.qp || r.complete) {
    if (r.ref == p.qp && is_tcp(r.priority)) on_tcp_data(r, p, host, now, replies);
    return;
  }
  const bool in_order = p.seq == r.expected;
  if (in_order) accept(r, p, host, now);
  const bool ahead = static_cast<std::int32_t>(p.seq - r.expected) > 0;  // a packet is missing
  const bool silent = ahead && r.nack_seq == r.expected && now < r.nack_again;
  const bool heard = (p.ecn && now >= r.quiet_until) || hears_data_;
  const bool cnp = heard && wants_cnp(r, p, host, in_order, !(silent && wire_.cnp_in_ack), now);
  if (cnp && !wire_.cnp_in_ack) add_cnp(r, now, replies);
  if (silent) return;
  const bool rides = cnp && wire_.cnp_in_ack;
  if (ahead) {
    r.nack_seq = r.expected;
    r.nack_again = now + kNackAgain;
  } else {
    const bool due =
        p.last || !in_order || transport_.ack_every == 1 || r.expected % transport_.ack_every == 0;
    if (!due && !rides) return;
  }
  add_reply(r, {ahead ? Kind::kNack : Kind::kAck, wire_.ack, p.sent, r.expected, rides}, replies);
  if (writes_acks_) schemes_.of(host).on_reply(slot_of(p.qp), static_cast<Time>(p.sent), now);
  ++totals(host).acks;
}

// ---- NIC ----

// after a hook of the NIC that may have reached them all
void TransportLayer::refresh_senders(int host) {
  Scheme& scheme = schemes_.of(host);
  if (!std::exchange(scheme.touched_senders, false)) return;
  for (const std::uint32_t slot : scheme.senders_of(host)) {
    qps_[slot].resting = false;
    set_pace(qps_[slot], scheme.pace(slot));
  }
}

// a tick in the past or at `now` would be for an instant whose timers have run
void TransportLayer::note_next_tick(int host, Time now) {
  tick_at_[static_cast<std::size_t>(host)] = std::max(schemes_.of(host).next_tick(host), now + 1);
}

void TransportLayer::on_pause(int host, unsigned priority, bool paused, Time now) {
  Scheme& scheme = schemes_.of(host);
  if (!hears_pauses_ || !scheme.hears_pauses) return;
  scheme.on_pause(host, priority, paused, now);
  refresh_senders(host);
  note_tick(host, now);
}

void TransportLayer::tick(int host, Time now, Replies& replies) {
  replies.count = 0;
  replies.cnp_delayed = false;
  const std::uint32_t ref = schemes_.of(host).tick(host, now);
  if (ref != Scheme::kNoCnp) {
    add_cnp(receivers_[slot_of(ref)], now, replies);
    ++totals(host).cnps;
  }
  refresh_senders(host);
  note_tick(host, now);
}

void TransportLayer::take_rtt(Qp& q, Time sent, Time now) {
  if (transport_.rtt_probe > 0) {
    Time& next = probe_at_[slot_of(q.ref)];
    if (sent < next) return;
    next = sent + transport_.rtt_probe;
  }
  q.rtt_sum += now - sent;
  ++q.rtt_count;
}

void TransportLayer::flush_rtt(Qp& q) {
  if (q.rtt_count == 0) return;
  log_.rtt(q.src, q.dst, q.base_rtt, q.rtt_sum, q.rtt_count);
  q.rtt_sum = 0;
  q.rtt_count = 0;
}

void TransportLayer::use_lanes(std::vector<std::uint8_t> lane_of_host, std::size_t lanes) {
  lane_of_host_ = std::move(lane_of_host);
  lanes_.resize(lanes);
}

void TransportLayer::gather_totals() {
  for (LaneTotals& lane : lanes_) log_.totals.add(std::exchange(lane.totals, {}));
}

bool TransportLayer::hosts_apart() const {
  return !lossy_ && !ticks_ && !hears_pauses_ && !schemes_.any(&Scheme::shares) &&
         !schemes_.tracing();
}

void TransportLayer::flush_rtts() {
  for (Qp& q : qps_) {
    if (q.live) flush_rtt(q);
  }
}

}  // namespace dcqcn
