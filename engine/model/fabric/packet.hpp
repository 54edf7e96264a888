// One packet, by value. Switches need nothing else: no flow table is touched on the way.
#pragma once

#include <cstring>

#include "model/base/units.hpp"

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
  std::uint64_t ecn : 1;  // congestion experienced
  std::uint64_t cnp : 1;  // ACK that carries a CNP (wire profile "hpcc")
  std::uint64_t
      priority : 3;  // of data; ACK and CNP have that of their data, see PfcConfig::in_class
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

// the single bits and small fields of a packet, beside `sent`
struct PacketFlags {
  Kind kind = Kind::kData;
  unsigned priority = 0;
  bool last = false;
  bool cnp = false;
  bool retransmit = false;
};

// A fresh packet, written as two wide words: what was written field by field cannot be copied on
// before all its stores are done.
inline void write_packet(Packet& packet, std::uint64_t sent, const PacketFlags& flags,
                         std::uint32_t qp, std::uint32_t seq, std::uint64_t address) {
  using Wide = std::uint64_t __attribute__((vector_size(16)));
  const std::uint64_t word = sent | std::uint64_t{flags.last} << kSentBits |
                             static_cast<std::uint64_t>(flags.kind) << (kSentBits + 1) |
                             std::uint64_t{flags.cnp} << (kSentBits + 4) |
                             std::uint64_t{flags.priority} << (kSentBits + 5) |
                             std::uint64_t{flags.retransmit} << (kSentBits + 8);
  const Wide wide[2] = {{0, word}, {qp | std::uint64_t{seq} << 32, address}};
  std::memcpy(static_cast<void*>(&packet), wide, sizeof packet);
}
// the last word of a packet: where it goes, how large it is, what ECMP hashes
constexpr std::uint64_t packet_address(std::uint16_t dst, Bytes bytes, std::uint16_t entropy) {
  return dst | static_cast<std::uint64_t>(bytes) << 16 | std::uint64_t{entropy} << 32;
}

}  // namespace dcqcn
