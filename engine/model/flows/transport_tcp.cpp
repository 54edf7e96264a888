// Flows of a class with transport = "tcp": their window is model/flows/tcp.hpp's, and their
// receivers keep what comes early. Queue pairs, messages and packets are those of all others.
#include "model/flows/transport.hpp"

namespace dcqcn {

// its receiver is closed to the usual path, which drops what comes early
void TransportLayer::start_tcp(Qp& q) {
  const std::uint32_t slot = slot_of(q.ref);
  tcp_.resize(std::max<std::size_t>(tcp_.size(), slot + 1));
  early_.resize(tcp_.size());
  tcp_[slot] = TcpFlow{};
  tcp_[slot].sender.start(wire_.payload, transport_.rto);
  tcp_[slot].loss_end = q.next_seq - 1;
  early_[slot].clear();
  receivers_[slot].complete = true;
  receivers_[slot].messages_left = 0;
  q.rate = line_[q.src];
  q.window = tcp_[slot].sender.packets();
}

// the next packet to be sent is the one that is missing, whatever the window
void TransportLayer::rewind(Qp& q) {
  TcpFlow& flow = tcp_[slot_of(q.ref)];
  flow.resume = q.next_seq;
  flow.rewound = true;
  go_back(q);
}

// and after it goes on where it was
void TransportLayer::put_forward(Qp& q) {
  TcpFlow& flow = tcp_[slot_of(q.ref)];
  if (!std::exchange(flow.rewound, false)) return;
  q.next_seq = flow.resume;
  q.send_message = q.first_message;
  while (q.send_message != kNone &&
         static_cast<std::int32_t>(messages_[q.send_message].end_seq - q.next_seq) <= 0) {
    q.send_message = messages_[q.send_message].next;
  }
}

Packet TransportLayer::send_tcp(Qp& q, Time now) {
  TcpFlow& flow = tcp_[slot_of(q.ref)];
  const bool idle = q.next_seq == q.unacked && !flow.rewound;
  const Time rto_at = q.rto_at;
  const Packet p = send_asking(q, now, [&q](const Sent&) { return Pace{q.rate, q.rate}; });
  put_forward(q);
  q.rto_at = idle ? now + flow.sender.rto() : rto_at;  // RFC 6298, 5.1: one that runs goes on
  totals(q.src).retransmitted += p.retransmit;
  return p;
}

void TransportLayer::on_tcp_ack(Qp& q, const Packet& p, Time now) {
  TcpFlow& flow = tcp_[slot_of(q.ref)];
  const std::int32_t fresh = static_cast<std::int32_t>(p.seq - q.unacked);
  if (fresh < 0) return;
  const std::uint32_t flight = (flow.rewound ? flow.resume : q.next_seq) - q.unacked;
  bool resend = false;
  if (fresh > 0) {
    const auto sent = static_cast<Time>(p.sent);
    take_rtt(q, sent, now);
    flow.sender.sample(now - sent);
    put_forward(q);
    take_acked(q, p.seq, now);
    const bool healed = static_cast<std::int32_t>(p.seq - flow.loss_end) >= 0;
    resend = flow.sender.on_ack(static_cast<std::uint32_t>(fresh), flight, healed);
    if (!flow.sender.holds_timer()) q.rto_at = now + flow.sender.rto();
  } else if (flight > 0) {
    resend =
        flow.sender.on_repeat(flight, static_cast<std::int32_t>(q.unacked - flow.loss_end) > 0);
    if (resend) flow.loss_end = q.sent_seq;
  }
  q.window = flow.sender.packets();
  if (resend && !flow.rewound) rewind(q);
}

void TransportLayer::on_tcp_timeout(Qp& q, Time now) {
  TcpFlow& flow = tcp_[slot_of(q.ref)];
  flow.sender.on_timeout(q.next_seq - q.unacked);
  flow.loss_end = q.sent_seq;
  go_back(q);
  q.window = flow.sender.packets();
  q.rto_at = now + flow.sender.rto();
}

void TransportLayer::on_tcp_data(QpReceiver& r, const Packet& p, int host, Time now,
                                 Replies& replies) {
  std::vector<Packet>& early = early_[slot_of(p.qp)];
  const std::int32_t ahead = static_cast<std::int32_t>(p.seq - r.expected);
  if (ahead > 0) {
    auto at = early.end();
    while (at != early.begin() && static_cast<std::int32_t>((at - 1)->seq - p.seq) > 0) --at;
    if (at == early.begin() || (at - 1)->seq != p.seq) early.insert(at, p);
  } else if (ahead == 0) {
    accept(r, p, host, now);
    auto at = early.begin();
    for (; at != early.end() && at->seq == r.expected; ++at) accept(r, *at, host, now);
    early.erase(early.begin(), at);
  }
  add_reply(r, {Kind::kAck, wire_.ack, p.sent, r.expected}, replies);
  ++totals(host).acks;
}

}  // namespace dcqcn
