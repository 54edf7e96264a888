// SPDX-License-Identifier: GPL-2.0-only
// The headers of a RoCEv2 frame and of an IEEE 802.1Qbb pause frame, byte by byte.
//
// data   Ethernet 14, IPv4 20, UDP 8, BTH 12, payload, ICRC 4, FCS 4      = payload + 62
// ACK    the same with AETH 4 instead of the payload                      = 66
// CNP    the same with 16 reserved bytes                                  = 78
// pause  Ethernet 14, opcode 2, enable vector 2, 8 times 2, padding, FCS  = 64
#ifndef DCQCN_ROCE_HEADERS_H
#define DCQCN_ROCE_HEADERS_H

#include <array>
#include <cstdint>

#include "ns3/address-utils.h"
#include "ns3/header.h"
#include "ns3/ipv4-address.h"
#include "ns3/mac48-address.h"
#include "ns3/packet.h"
#include "ns3/trailer.h"

namespace ns3 {

/// IPv4 without options; protocol UDP, don't fragment, checksum filled in.
class RoceIpv4Header : public Header {
 public:
  static TypeId GetTypeId();
  TypeId GetInstanceTypeId() const override { return GetTypeId(); }
  uint32_t GetSerializedSize() const override { return 20; }
  void Serialize(Buffer::Iterator start) const override;
  uint32_t Deserialize(Buffer::Iterator start) override;
  void Print(std::ostream& os) const override;

  uint8_t dscp = 0;
  uint8_t ecn = 0;  ///< 2 ECT(0), 3 congestion experienced
  uint16_t total_length = 0;
  uint16_t identification = 0;
  uint8_t ttl = 64;
  Ipv4Address source;
  Ipv4Address destination;
};

/// UDP with checksum 0, as RoCEv2 sends it; destination port 4791.
class RoceUdpHeader : public Header {
 public:
  static constexpr uint16_t kPort = 4791;
  static TypeId GetTypeId();
  TypeId GetInstanceTypeId() const override { return GetTypeId(); }
  uint32_t GetSerializedSize() const override { return 8; }
  void Serialize(Buffer::Iterator start) const override;
  uint32_t Deserialize(Buffer::Iterator start) override;
  void Print(std::ostream& os) const override;

  uint16_t source_port = 0;  ///< the flow's entropy
  uint16_t length = 0;
};

/// Base transport header of InfiniBand.
class BthHeader : public Header {
 public:
  enum Opcode : uint8_t {
    kSendFirst = 0x00,
    kSendMiddle = 0x01,
    kSendLast = 0x02,
    kSendOnly = 0x04,
    kAcknowledge = 0x11,
    kCnp = 0x81
  };
  static TypeId GetTypeId();
  TypeId GetInstanceTypeId() const override { return GetTypeId(); }
  uint32_t GetSerializedSize() const override { return 12; }
  void Serialize(Buffer::Iterator start) const override;
  uint32_t Deserialize(Buffer::Iterator start) override;
  void Print(std::ostream& os) const override;

  uint8_t opcode = kSendOnly;
  uint8_t pad = 0;  ///< bytes that fill the payload up to a multiple of 4 (here always 0)
  bool fecn = false;
  bool becn = false;  ///< set in a CNP
  bool ack_request = false;
  uint8_t reserved = 0;         ///< the 7 bits beside it; a scheme may count in those of a CNP
  uint32_t destination_qp = 0;  ///< 24 bits
  uint32_t psn = 0;             ///< 24 bits
};

/// ACK extended transport header.
class AethHeader : public Header {
 public:
  static TypeId GetTypeId();
  TypeId GetInstanceTypeId() const override { return GetTypeId(); }
  uint32_t GetSerializedSize() const override { return 4; }
  void Serialize(Buffer::Iterator start) const override;
  uint32_t Deserialize(Buffer::Iterator start) override;
  void Print(std::ostream& os) const override;

  bool negative = false;  ///< a sequence-error NAK
  uint32_t msn = 0;       ///< 24 bits
};

/// What follows the Ethernet header of a priority flow control frame.
class PfcHeader : public Header {
 public:
  static constexpr uint16_t kEtherType = 0x8808;
  static TypeId GetTypeId();
  TypeId GetInstanceTypeId() const override { return GetTypeId(); }
  uint32_t GetSerializedSize() const override { return 20; }
  void Serialize(Buffer::Iterator start) const override;
  uint32_t Deserialize(Buffer::Iterator start) override;
  void Print(std::ostream& os) const override;

  uint8_t enabled = 0;               ///< one bit per priority
  std::array<uint16_t, 8> quanta{};  ///< 0 resumes, anything else pauses
};

/// The MAC address of port `port` of node `node`; locally administered.
Mac48Address PortMac(uint32_t node, uint32_t port);
/// The IPv4 address of host `host`: 11.x.y.z.
Ipv4Address HostIp(uint32_t host);
/// The invariant CRC of RoCEv2 over `frame` from the IPv4 header to the end of the payload.
uint32_t InvariantCrc(const uint8_t* frame, uint32_t size);

}  // namespace ns3
#endif
