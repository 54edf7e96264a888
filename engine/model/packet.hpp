// One packet, by value. Switches need nothing else: no flow table is touched on the way.
#pragma once

#include "model/units.hpp"

namespace dcqcn {

enum class Kind : std::uint8_t { kData = 0, kAck = 1, kCnp = 2, kNack = 3 };

// a packet knows when it was sent by so many bits: 36,028 s
inline constexpr int kSentBits = 55;
inline constexpr Time kEndOfTime = Time{1} << kSentBits;

struct Packet {
  Time arrival;                    // when its last bit reaches the far end of the link it is on
  std::uint64_t sent : kSentBits;  // data: start on the sender's wire; ACK: the same, echoed
  std::uint64_t last : 1;          // last packet of a message: always acknowledged
  std::uint64_t kind : 2;
  std::uint64_t ecn : 1;       // congestion experienced
  std::uint64_t cnp : 1;       // ACK that carries a CNP (wire profile "hpcc")
  std::uint64_t priority : 3;  // of data; ACK and CNP have that of their data, see acks_as_data
  std::uint64_t retransmit : 1;
  std::uint32_t qp;       // slot and generation, see transport.hpp
  std::uint32_t seq;      // data: packet number in its QP; ACK and NACK: next packet expected
  std::uint16_t dst;      // destination host
  std::uint16_t bytes;    // on the wire
  std::uint16_t entropy;  // what ECMP hashes (the UDP source port of RoCEv2)
  std::uint16_t in_port;  // port of the switch it came in by

  Kind type() const { return static_cast<Kind>(kind); }
  bool is_data() const { return kind == static_cast<std::uint64_t>(Kind::kData); }
};
static_assert(sizeof(Packet) == 32);

}  // namespace dcqcn
