#include "model/transport.hpp"

#include <stdexcept>

#include "model/flow_table.hpp"

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
      port_next_cnp_(settings_.size(), 0),
      ring_received_(scenario.workloads.size()) {
  for (std::size_t w = 0; w < scenario.workloads.size(); ++w) {
    if (scenario.workloads[w].pattern == Pattern::kRing) ring_received_[w].resize(settings_.size());
  }
}

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
    flow_keys_.push_back(0);
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
  q.entropy = topology_.entropy(flow.src, flow.dst, ordinal, false);
  flow_keys_[slot] = flow_key_of(static_cast<std::uint32_t>(flow.src), ordinal);
  q.rp.start(rate_of(topology_.port(topology_.first_port(flow.src)).ps_per_byte));
  receivers_[slot] = QpReceiver{};
  receivers_[slot].ref = ref;
  receivers_[slot].src = q.src;
  receivers_[slot].workload = flow.workload;
  receivers_[slot].messages_left = transport_.qp_per_pair ? 0 : flow.messages;
  receivers_[slot].entropy = topology_.entropy(flow.src, flow.dst, ordinal, true);
  return slot;
}

std::uint32_t TransportLayer::start_flow(const FlowStart& flow, Time now) {
  std::uint32_t slot = kNone;
  const std::uint32_t ordinal = next_ordinal_[static_cast<std::size_t>(flow.src)];
  if (transport_.qp_per_pair) {
    // a ring chains its transfers by what arrives, so it has connections of its own
    const bool ring = scenario_.workloads[flow.workload].pattern == Pattern::kRing;
    const std::uint64_t pair =
        static_cast<std::uint64_t>(flow.src) << 48 | static_cast<std::uint64_t>(flow.dst) << 32 |
        static_cast<std::uint64_t>(ring ? flow.workload + 1 : 0) << 8 | flow.priority;
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
  m.ideal = topology_.ideal_fct(wire_, forward, backward, flow.bytes, transport_.ack_every);
  m.ordinal = ordinal;
  m.workload = flow.workload;
  const Bytes packets = std::max<Bytes>(1, (flow.bytes + wire_.payload - 1) / wire_.payload);
  m.first_seq = q.end_seq;
  m.end_seq = q.end_seq + static_cast<std::uint32_t>(packets);
  q.end_seq = m.end_seq;
  if (q.last_message == kNone) {
    q.first_message = id;
    q.message_end = m.end_seq;
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
  const Rate rate = q.rp.pacing_rate(s);
  if (rate != q.gap_rate || bytes != q.gap_bytes) {
    q.gap_rate = rate;
    q.gap_bytes = bytes;
    q.gap = pacing_gap(bytes, rate);
  }
  q.next_send = now + q.gap;

  if (lossy_ && q.next_seq == q.unacked) q.rto_at = now + transport_.rto;

  Packet p{};
  p.sent = static_cast<std::uint64_t>(now);
  p.kind = static_cast<std::uint64_t>(Kind::kData);
  p.priority = q.priority & 7u;
  p.qp = q.ref;
  p.seq = q.next_seq++;
  if (q.next_seq - q.sent_seq == 1) {
    q.sent_seq = q.next_seq;
  } else {
    p.retransmit = 1;
  }
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
    while (q.first_message != kNone && static_cast<std::int32_t>(q.message_end - q.unacked) <= 0) {
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
  log_.totals.retransmitted += q.next_seq - q.unacked;
  go_back(q);
  q.rto_at = now + transport_.rto;
  return true;
}

// NP: the first mark after the gaps of the QP and of the NIC sends a CNP at once
bool TransportLayer::cnp_due(QpReceiver& r, int host, Time now) {
  Time& port = port_next_cnp_[static_cast<std::size_t>(host)];
  if (now < r.next_cnp || now < port) return false;
  const Time gap = settings_[static_cast<std::size_t>(host)].cnp_gap;
  r.next_cnp = now + gap;
  port = now + std::max(transport_.cnp_port_gap, transport_.cnp_scope_port ? gap : 0);
  ++log_.totals.cnps;
  return true;
}

// ring collectives: the k-th transfer received in a round starts the (k+1)-th transfer sent
void TransportLayer::chain(const QpReceiver& r, int host, Time now) {
  const WorkloadSpec& w = scenario_.workloads[r.workload];
  const std::uint32_t received = ++ring_received_[r.workload][static_cast<std::size_t>(host)];
  if (received % static_cast<std::uint32_t>(w.steps) == 0) return;
  std::size_t at = 0;
  while (w.hosts[at] != host) ++at;
  chained.push_back({now, w.bytes, host, w.hosts[(at + 1) % w.hosts.size()], r.workload, 1,
                     static_cast<std::uint8_t>(w.priority)});
}

void TransportLayer::on_data(const Packet& p, int host, Time now, Replies& replies) {
  replies.count = 0;
  replies.cnp_delayed = false;
  QpReceiver& r = receivers_[slot_of(p.qp)];
  if (r.ref != p.qp || r.complete) return;
  const bool in_order = p.seq == r.expected;
  if (in_order) {
    ++r.expected;
    log_.totals.delivered += payload_of(p);
    if (p.last) {
      // once everything is here duplicates need no answer, since ACKs are never lost
      if (r.messages_left > 0) r.complete = --r.messages_left == 0;
      if (!ring_received_[r.workload].empty()) chain(r, host, now);
    }
  }
  const bool ahead = static_cast<std::int32_t>(p.seq - r.expected) > 0;  // a packet is missing
  const bool silent = ahead && r.nack_seq == r.expected && now < r.nack_again;
  const bool cnp = p.ecn && !(silent && wire_.cnp_in_ack) && cnp_due(r, host, now);
  Packet reply{};
  reply.qp = p.qp;
  reply.dst = r.src;
  reply.entropy = r.entropy;
  reply.priority = p.priority;
  if (cnp && !wire_.cnp_in_ack) {
    reply.kind = static_cast<std::uint64_t>(Kind::kCnp);
    reply.bytes = static_cast<std::uint16_t>(wire_.cnp);
    replies.packets[replies.count++] = reply;
    replies.cnp_delayed = transport_.cnp_delay > 0;
  }
  if (silent) return;
  reply.cnp = cnp && wire_.cnp_in_ack;
  if (ahead) {
    r.nack_seq = r.expected;
    r.nack_again = now + kNackAgain;
    reply.kind = static_cast<std::uint64_t>(Kind::kNack);
  } else {
    const bool due =
        p.last || !in_order || transport_.ack_every == 1 || r.expected % transport_.ack_every == 0;
    if (!due && !reply.cnp) return;
    reply.kind = static_cast<std::uint64_t>(Kind::kAck);
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
