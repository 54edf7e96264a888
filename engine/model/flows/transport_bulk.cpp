// What an engine calls that moves bytes and not packets: the same queue pairs, messages and
// schemes, told of a stretch of a message at a time.
#include "model/flows/transport.hpp"

namespace dcqcn {

const Message* TransportLayer::message_to_send(const Qp& q) const {
  return q.send_message == kNone ? nullptr : &messages_[q.send_message];
}

Bytes TransportLayer::wire_bytes_of(const Message& m) const {
  if (m.bytes == kUnlimited) return kUnlimited;
  const Bytes packets = std::max<Bytes>(1, (m.bytes + wire_.payload - 1) / wire_.payload);
  return m.bytes + packets * wire_.data_overhead;
}

Rate TransportLayer::sent_bytes(Qp& q, const BulkSent& sent, Time now) {
  q.sent_bytes += sent.bytes;
  totals(q.src).data_packets += sent.packets;
  if (q.resting) return q.rate;
  const Sent told{sent.payload, sent.last, false, sent.bytes};
  const Pace pace = schemes_.of(q.src).on_sent(slot_of(q.ref), told, now);
  set_pace(q, pace);
  return pace.pacing;
}

std::uint32_t TransportLayer::sent_message(Qp& q) {
  const Message& m = messages_[q.send_message];
  q.next_seq = q.sent_seq = m.end_seq;
  q.send_message = m.next;
  return m.end_seq;
}

const Message& TransportLayer::message_ending(std::uint32_t ref, std::uint32_t end_seq) const {
  std::uint32_t m = qps_[slot_of(ref)].first_message;
  while (messages_[m].end_seq != end_seq) m = messages_[m].next;
  return messages_[m];
}

bool TransportLayer::marked_bytes(Qp& q, Time now, Time& quiet_until) {
  const std::uint32_t slot = slot_of(q.ref);
  QpReceiver& r = receivers_[slot];
  const Arrived arrived{wire_.payload, true, true, r.complete};
  const Answer answer = schemes_.of(q.dst).on_data(slot, q.dst, arrived, true, now, now, now);
  quiet_until = r.quiet_until = answer.quiet_until;
  totals(q.dst).cnps += answer.cnp;
  return answer.cnp;
}

void TransportLayer::message_arrived(Qp& q, std::uint32_t end_seq, Time now) {
  QpReceiver& r = receivers_[slot_of(q.ref)];
  r.expected = end_seq;
  if (r.messages_left > 0) r.complete = --r.messages_left == 0;
  if (reacts(scenario_.workloads[r.workload].pattern)) {
    source_.arrived(r.workload, tag_of_arrived(r), q.dst, now, chained);
  }
}

bool TransportLayer::message_acked(Qp& q, std::uint32_t end_seq, Time now) {
  take_acked(q, end_seq, now);
  return end_if_idle(q, now);
}

}  // namespace dcqcn
