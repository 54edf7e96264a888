// How flows begin: the queue pair that carries one, and its messages.
#include <algorithm>

#include "model/flows/transport.hpp"

namespace dcqcn {

std::uint32_t TransportLayer::start_flow(const FlowStart& flow, Time now) {
  std::uint32_t slot = kNone;
  const std::uint32_t ordinal = next_ordinal_[static_cast<std::size_t>(flow.src)];
  // behind a flow without an end nothing would ever be sent
  if (transport_.qp_per_pair && flow.bytes != kUnlimited) {
    // what chains its transfers by what arrives has connections of its own
    const bool own = reacts(scenario_.workloads[flow.workload].pattern);
    const std::uint64_t pair =
        static_cast<std::uint64_t>(flow.src) << 48 | static_cast<std::uint64_t>(flow.dst) << 32 |
        static_cast<std::uint64_t>(flow.connection) << 16 |
        static_cast<std::uint64_t>(own ? flow.workload << 1 | 1u : 0u) << 3 | flow.priority;
    const auto [at, fresh] = pairs_.try_emplace(pair, kNone);
    if (fresh) at->second = open_qp(flow, ordinal, now);
    slot = at->second;
  } else {
    slot = open_qp(flow, ordinal, now);
  }
  for (std::uint32_t i = 0; i < flow.messages; ++i) {
    add_message(qps_[slot], flow, next_ordinal_[static_cast<std::size_t>(flow.src)]++, now);
  }
  return slot;
}

std::uint32_t TransportLayer::free_message() {
  if (free_messages_.empty()) {
    messages_.emplace_back();
    return static_cast<std::uint32_t>(messages_.size() - 1);
  }
  const std::uint32_t id = free_messages_.back();
  free_messages_.pop_back();
  return id;
}

void TransportLayer::add_message(Qp& q, const FlowStart& flow, std::uint32_t ordinal, Time now) {
  const std::uint32_t id = free_message();
  const std::uint16_t back = receivers_[slot_of(q.ref)].entropy;
  const std::vector<int> forward = topology_.path(flow.src, flow.dst, q.entropy);
  const std::vector<int> backward = topology_.path(flow.dst, flow.src, back);
  q.base_rtt = topology_.base_rtt(forward);
  Message& m = messages_[id];
  m = Message{};
  m.bytes = flow.bytes;
  m.start = now;
  m.ordinal = ordinal;
  m.workload = flow.workload;
  m.tag = flow.tag;
  const bool endless = flow.bytes == kUnlimited;
  Bytes packets = kStretch;
  if (!endless) {
    m.ideal = topology_.ideal_fct(wire_, forward, backward, flow.bytes, transport_.ack_every);
    if (!is_tcp(q.priority)) m.ideal += transport_.message_cost;
    packets = std::max<Bytes>(1, (flow.bytes + wire_.payload - 1) / wire_.payload);
  }
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
  if (q.send_message == kNone) {  // the work of others is done while those before it are sent
    q.send_message = id;
    if (transport_.message_cost > 0 && !is_tcp(q.priority)) {
      q.next_send = std::max(q.next_send, now + transport_.message_cost);
    }
  }
  ++(endless ? unlimited_ : live_messages_);
}

}  // namespace dcqcn
