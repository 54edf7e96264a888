// The two halves of a queue pair, and the messages that it carries.
#pragma once

#include "model/base/prefetch.hpp"
#include "model/base/units.hpp"

namespace dcqcn {

inline constexpr std::uint32_t kNone = ~0u;

// a reference to a queue pair is its slot and the slot's generation
inline constexpr std::uint32_t kSlotBits = 22;
inline constexpr std::uint32_t kSlotMask = (1u << kSlotBits) - 1;
constexpr std::uint32_t slot_of(std::uint32_t ref) { return ref & kSlotMask; }

// the sender's half; of its scheme it shows when it may send, its rate and its window. Two lines of
// the cache, since with thousands of queue pairs the time goes into fetching them.
struct alignas(kCacheLine) Qp {
  Time next_send = 0;  // pacing: no packet may start before
  std::uint32_t next_seq = 0;
  std::uint32_t end_seq = 0;      // one past the last packet of all queued messages
  std::uint32_t unacked = 0;      // oldest packet without an ACK
  std::uint32_t window = kNone;   // packets in flight
  std::uint32_t sent_seq = 0;     // one past the highest packet ever sent
  std::uint32_t message_end = 0;  // end_seq of first_message
  Rate rate = 0;
  Bytes sent_bytes = 0;  // on the wire, repeated packets too
  Time gap = 0;          // cached pacing gap: of a packet of gap_bytes at gap_rate
  Rate gap_rate = 0;
  std::uint16_t gap_bytes = 0;
  std::uint16_t src = 0;
  std::uint16_t dst = 0;
  std::uint16_t entropy = 0;
  std::uint32_t ref = 0;           // slot and generation, as in Packet::qp
  std::uint32_t nic_slot = kNone;  // the engine's place for it in the round robin
  std::uint32_t send_message = kNone;
  std::uint32_t first_message = kNone;
  std::uint32_t last_message = kNone;
  std::uint8_t priority = 3;
  bool live = false;
  bool resting = false;  // sends change nothing in its scheme, which is not asked
  bool rto_armed = false;
  Time rto_at = kNever;
  Time base_rtt = 0;
  Time rtt_sum = 0;  // of the interval
  std::uint64_t rtt_count = 0;

  bool has_bytes() const { return next_seq != end_seq; }
  // may it start a packet, leaving pacing and pauses aside?
  bool may_send() const { return has_bytes() && next_seq - unacked < window; }
};
static_assert(sizeof(Qp) == 2 * kCacheLine);

// the receiver's half; what it does depends on nothing but what has arrived
struct alignas(kCacheLine) QpReceiver {
  std::uint32_t ref = 0;
  std::uint32_t expected = 0;
  std::uint32_t nack_seq = kNone;
  std::uint32_t workload = 0;
  std::uint32_t messages_left = 0;  // 0 on a kept QP
  std::uint16_t entropy = 0;        // of the reverse direction
  std::uint16_t src = 0;
  std::uint16_t priority = 3;
  bool complete = false;  // everything has come; whatever else comes is a late duplicate
  Time nack_again = 0;
  Time quiet_until = 0;  // no mark is answered before
};
static_assert(sizeof(QpReceiver) == kCacheLine);

struct Message {
  Bytes bytes = 0;
  Time start = 0;
  Time ideal = 0;
  std::uint32_t first_seq = 0;
  std::uint32_t end_seq = 0;
  std::uint32_t ordinal = 0;
  std::uint32_t workload = 0;
  std::uint32_t tag = 0;  // what a workload that reacts to arrivals knows it by
  std::uint32_t next = kNone;
};

}  // namespace dcqcn
