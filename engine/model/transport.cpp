#include "model/transport.hpp"

#include <stdexcept>

namespace dcqcn {
namespace {

bool can_lose(const Scenario& scenario) {
  for (const WorkloadSpec& w : scenario.workloads) {
    if (!scenario.pfc.is_lossless(w.priority)) return true;
  }
  return !scenario.pfc.enabled;
}

inline constexpr Time kNackAgain = 500 * kPicosPerMicro;

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
      settings_(static_cast<std::size_t>(scenario.hosts)),
      next_ordinal_(settings_.size(), 0),
      port_next_cnp_(settings_.size(), 0) {}

void TransportLayer::change_settings(const std::vector<NicSetting>& settings, Time now) {
  for (Qp& q : qps_) {
    if (q.live) q.rp.change_setting(settings_[q.src], settings[q.src], now);
  }
  settings_ = settings;
}

std::uint32_t TransportLayer::open_qp(const FlowStart& flow, std::uint32_t ordinal) {
  std::uint32_t slot;
  if (free_qps_.empty()) {
    slot = static_cast<std::uint32_t>(qps_.size());
    if (slot > kSlotMask) throw std::runtime_error("more than 4,194,304 queue pairs at once");
    qps_.emplace_back();
    receivers_.emplace_back();
    qps_[slot].ref = slot;
  } else {
    slot = free_qps_.back();
    free_qps_.pop_back();
  }
  Qp& q = qps_[slot];
  const std::uint32_t ref = q.ref + (1u << kSlotBits);  // next generation
  q = Qp{};
  q.ref = ref;
  q.live = true;
  q.src = static_cast<std::uint16_t>(flow.src);
  q.dst = static_cast<std::uint16_t>(flow.dst);
  q.priority = flow.priority;
  q.entropy = flow_entropy(flow.src, flow.dst, ordinal, false);
  const std::uint64_t name = static_cast<std::uint64_t>(flow.src) << 32 | ordinal;
  q.flow_key = static_cast<std::uint32_t>(mix64(name + 1) >> 32) | 1u;
  q.rp.start(rate_of(topology_.port(topology_.first_port(flow.src)).ps_per_byte));
  receivers_[slot] = QpReceiver{};
  receivers_[slot].entropy = flow_entropy(flow.src, flow.dst, ordinal, true);
  return slot;
}

std::uint32_t TransportLayer::start_flow(const FlowStart& flow, Time now) {
  std::uint32_t slot = kNone;
  const std::uint32_t ordinal = next_ordinal_[static_cast<std::size_t>(flow.src)];
  if (transport_.qp_per_pair) {
    const std::uint64_t pair = static_cast<std::uint64_t>(flow.src) << 32 |
                               static_cast<std::uint64_t>(flow.dst) << 8 | flow.priority;
    const auto [at, fresh] = pairs_.try_emplace(pair, kNone);
    if (fresh) at->second = open_qp(flow, ordinal);
    slot = at->second;
  } else {
    slot = open_qp(flow, ordinal);
  }
  for (std::uint32_t i = 0; i < flow.messages; ++i) {
    add_message(qps_[slot], flow, next_ordinal_[static_cast<std::size_t>(flow.src)]++, now);
  }
  return slot;
}

void TransportLayer::add_message(Qp& q, const FlowStart& flow, std::uint32_t ordinal, Time now) {
  std::uint32_t id;
  if (free_messages_.empty()) {
    id = static_cast<std::uint32_t>(messages_.size());
    messages_.emplace_back();
  } else {
    id = free_messages_.back();
    free_messages_.pop_back();
  }
  const std::uint16_t back = receivers_[slot_of(q.ref)].entropy;
  const std::vector<int> forward = topology_.path(flow.src, flow.dst, q.entropy);
  const std::vector<int> backward = topology_.path(flow.dst, flow.src, back);
  q.base_rtt = topology_.base_rtt(forward);
  Message& m = messages_[id];
  m = Message{};
  m.bytes = flow.bytes;
  m.start = now;
  m.ideal = topology_.ideal_fct(wire_, forward, backward, flow.bytes);
  m.ordinal = ordinal;
  m.workload = flow.workload;
  const Bytes packets = std::max<Bytes>(1, (flow.bytes + wire_.payload - 1) / wire_.payload);
  m.first_seq = q.end_seq;
  m.end_seq = q.end_seq + static_cast<std::uint32_t>(packets);
  q.end_seq = m.end_seq;
  if (q.last_message == kNone) {
    q.first_message = id;
  } else {
    messages_[q.last_message].next = id;
  }
  q.last_message = id;
  if (q.send_message == kNone) q.send_message = id;
  ++live_messages_;
}

bool TransportLayer::in_window(const Qp& q) const {
  Bytes window = transport_.window;
  if (transport_.window_scales) {
    const double share = static_cast<double>(q.rp.rate) / static_cast<double>(q.rp.line);
    window = std::max<Bytes>(1, static_cast<Bytes>(static_cast<double>(window) * share));
  }
  return static_cast<Bytes>(q.next_seq - q.unacked) * wire_.payload < window;
}

Packet TransportLayer::send(Qp& q, Time now) {
  const Message& m = messages_[q.send_message];
  const Bytes before = static_cast<Bytes>(q.next_seq - m.first_seq) * wire_.payload;
  const Bytes payload = std::min(wire_.payload, m.bytes - before);
  const Bytes bytes = payload + wire_.data_overhead;
  const NicSetting& s = settings_[q.src];
  q.rp.catch_up(s, now);
  q.rp.on_sent(s, payload);
  q.next_send = now + pacing_gap(bytes, q.rp.pacing_rate(s));

  if (lossy_ && q.next_seq == q.unacked) q.rto_at = now + transport_.rto;

  Packet p{};
  p.sent = static_cast<std::uint64_t>(now);
  p.kind = static_cast<std::uint64_t>(Kind::kData);
  p.priority = q.priority & 7u;
  p.qp = q.ref;
  p.seq = q.next_seq++;
  p.dst = q.dst;
  p.bytes = static_cast<std::uint16_t>(bytes);
  p.entropy = q.entropy;
  if (q.next_seq == m.end_seq) {
    p.last = 1;
    q.send_message = m.next;
  }
  ++log_.totals.data_packets;
  return p;
}

bool TransportLayer::on_ack(Qp& q, const Packet& p, Time now) {
  if (p.type() == Kind::kAck) {
    q.rtt_sum += now - static_cast<Time>(p.sent);
    ++q.rtt_count;
  }
  // sequence numbers wrap: compare by signed distance
  if (static_cast<std::int32_t>(p.seq - q.unacked) > 0) {
    q.unacked = p.seq;
    if (lossy_) q.rto_at = now + transport_.rto;
    while (q.first_message != kNone &&
           static_cast<std::int32_t>(messages_[q.first_message].end_seq - q.unacked) <= 0) {
      complete(q, messages_[q.first_message], now);
    }
    // a late ACK may overtake a sender that went back
    if (static_cast<std::int32_t>(q.next_seq - q.unacked) < 0) go_back(q);
  }
  if (p.type() == Kind::kNack) {
    log_.totals.retransmitted += q.next_seq - q.unacked;
    go_back(q);
  }
  if (q.first_message != kNone || transport_.qp_per_pair) return false;
  flush_rtt(q);
  q.live = false;
  free_qps_.push_back(slot_of(q.ref));
  return true;
}

void TransportLayer::complete(Qp& q, Message& m, Time now) {
  log_.finished.push_back(
      {q.src, q.dst, m.ordinal, m.workload, m.bytes, m.start, now - m.start, m.ideal});
  source_.finished(m.workload, now);
  --live_messages_;
  free_messages_.push_back(q.first_message);
  if (q.send_message == q.first_message) q.send_message = m.next;
  q.first_message = m.next;
  if (q.first_message == kNone) q.last_message = kNone;
}

void TransportLayer::go_back(Qp& q) {
  q.next_seq = q.unacked;
  q.send_message = q.first_message;
}

bool TransportLayer::on_rto(Qp& q, Time now) {
  if (q.unacked == q.next_seq || now < q.rto_at) return false;
  log_.totals.retransmitted += q.next_seq - q.unacked;
  go_back(q);
  q.rto_at = now + transport_.rto;
  return true;
}

void TransportLayer::on_data(const Packet& p, int host, Time now, Replies& replies) {
  replies.count = 0;
  replies.cnp_delayed = false;
  Qp* sender = find(p.qp);
  if (!sender) return;  // a duplicate of a flow that is already complete
  QpReceiver& r = receivers_[slot_of(p.qp)];
  const bool in_order = p.seq == r.expected;
  if (in_order) {
    ++r.expected;
    log_.totals.delivered += payload_of(p);
  }
  const NicSetting& s = settings_[static_cast<std::size_t>(host)];
  bool cnp = false;
  if (p.ecn) {  // NP: the first mark after the gap sends a CNP at once
    Time& port = port_next_cnp_[static_cast<std::size_t>(host)];
    if (now >= r.next_cnp && now >= port) {
      cnp = true;
      r.next_cnp = now + s.cnp_gap;
      port = now + std::max(transport_.cnp_port_gap, transport_.cnp_scope_port ? s.cnp_gap : 0);
      ++log_.totals.cnps;
    }
  }
  Packet reply{};
  reply.qp = p.qp;
  reply.dst = sender->src;
  reply.entropy = r.entropy;
  if (cnp && !wire_.cnp_in_ack) {
    reply.kind = static_cast<std::uint64_t>(Kind::kCnp);
    reply.bytes = static_cast<std::uint16_t>(wire_.cnp);
    replies.packets[replies.count++] = reply;
    replies.cnp_delayed = transport_.cnp_delay > 0;
  }
  const bool ahead = static_cast<std::int32_t>(p.seq - r.expected) > 0;
  if (ahead) {
    if (r.nack_seq == r.expected && now < r.nack_again) return;
    r.nack_seq = r.expected;
    r.nack_again = now + kNackAgain;
    reply.kind = static_cast<std::uint64_t>(Kind::kNack);
  } else {
    const bool due = p.last || r.expected % transport_.ack_every == 0 || !in_order;
    if (!due && !(cnp && wire_.cnp_in_ack)) return;
    reply.kind = static_cast<std::uint64_t>(Kind::kAck);
    reply.cnp = cnp && wire_.cnp_in_ack;
  }
  reply.bytes = static_cast<std::uint16_t>(wire_.ack);
  reply.seq = r.expected;
  reply.sent = p.sent;
  replies.packets[replies.count++] = reply;
  ++log_.totals.acks;
}

void TransportLayer::flush_rtt(Qp& q) {
  if (q.rtt_count == 0) return;
  log_.rtt(q.src, q.dst, q.base_rtt, q.rtt_sum, q.rtt_count);
  q.rtt_sum = 0;
  q.rtt_count = 0;
}

void TransportLayer::flush_rtts() {
  for (Qp& q : qps_) {
    if (q.live) flush_rtt(q);
  }
}

}  // namespace dcqcn
