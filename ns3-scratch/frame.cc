// SPDX-License-Identifier: GPL-2.0-only
#include "frame.h"

#include <array>
#include <vector>

#include "dcqcn-node.h"
#include "ns3/ethernet-header.h"
#include "roce-headers.h"

namespace ns3 {
namespace {

constexpr uint8_t kControlDscp = 48;
constexpr uint32_t kPfcPadding = 26;

EthernetHeader Ethernet(Mac48Address from, Mac48Address to, uint16_t type) {
  EthernetHeader header(false);
  header.SetSource(from);
  header.SetDestination(to);
  header.SetLengthType(type);
  return header;
}

Ptr<Packet> PauseFrame(const Flight& flight, Mac48Address from) {
  Ptr<Packet> frame = Create<Packet>(kPfcPadding);
  PfcHeader pfc;
  const unsigned priority = flight.packet.priority;
  pfc.enabled = static_cast<uint8_t>(1u << priority);
  pfc.quanta[priority] = flight.pfc == Flight::kPause ? 0xffff : 0;
  frame->AddHeader(pfc);
  frame->AddHeader(Ethernet(from, Mac48Address("01:80:c2:00:00:01"), PfcHeader::kEtherType));
  return frame;
}

uint8_t Opcode(const ::dcqcn::Packet& p, const MessageEnds::Pair& pair) {
  switch (p.type()) {
    case ::dcqcn::Kind::kData:
      if (pair.Begins(p.seq)) return p.last ? BthHeader::kSendOnly : BthHeader::kSendFirst;
      return p.last ? BthHeader::kSendLast : BthHeader::kSendMiddle;
    case ::dcqcn::Kind::kCnp:
      return BthHeader::kCnp;
    default:
      return BthHeader::kAcknowledge;
  }
}

// the invariant CRC covers the frame from the IPv4 header on, so it comes last
void AddIcrc(Ptr<Packet> datagram) {
  std::vector<uint8_t> bytes(datagram->GetSize());
  datagram->CopyData(bytes.data(), static_cast<uint32_t>(bytes.size()));
  const uint32_t crc = InvariantCrc(bytes.data(), static_cast<uint32_t>(bytes.size()));
  const uint8_t little_endian[4] = {static_cast<uint8_t>(crc), static_cast<uint8_t>(crc >> 8),
                                    static_cast<uint8_t>(crc >> 16),
                                    static_cast<uint8_t>(crc >> 24)};
  datagram->AddAtEnd(Create<Packet>(little_endian, 4));
}

// the 16 reserved bytes, of which a scheme may use the first four
Ptr<Packet> CnpContent(const ::dcqcn::CnpBits& bits) {
  std::array<uint8_t, 16> bytes{};
  for (unsigned i = 0; i < 4; ++i) bytes[i] = static_cast<uint8_t>(bits.reserved >> (24 - 8 * i));
  return Create<Packet>(bytes.data(), static_cast<uint32_t>(bytes.size()));
}

// payload, and the extended header of the kind
Ptr<Packet> Content(const ::dcqcn::Packet& p, const ::dcqcn::Wire& wire,
                    const ::dcqcn::CnpBits& bits, const MessageEnds::Pair& pair) {
  if (p.is_data()) {
    const uint32_t payload = p.bytes - static_cast<uint32_t>(wire.data_overhead);
    return Create<Packet>(payload);
  }
  if (p.type() == ::dcqcn::Kind::kCnp) return CnpContent(bits);
  Ptr<Packet> content = Create<Packet>();
  AethHeader aeth;
  aeth.negative = p.type() == ::dcqcn::Kind::kNack;
  aeth.msn = pair.Before(p.seq) & 0xffffff;
  content->AddHeader(aeth);
  return content;
}

}  // namespace

Ptr<Packet> MakeFrame(const Flight& flight, const DcqcnNode& sender, uint32_t port) {
  const Mac48Address from = PortMac(sender.GetId(), port);
  if (flight.pfc != Flight::kNone) return PauseFrame(flight, from);
  const ::dcqcn::Packet& p = flight.packet;
  const ::dcqcn::World& world = sender.World();
  // the model's queue pair may be another one by now: a late CNP, a packet that was sent twice
  const MessageEnds::Pair& pair = sender.Messages().Of(p.qp);

  ::dcqcn::CnpBits bits;
  if (p.type() == ::dcqcn::Kind::kCnp && pair.src != pair.dst) {  // else it is forgotten
    bits = world.transport.schemes()
               .of(static_cast<int>(pair.dst))
               .cnp_bits(::dcqcn::slot_of(p.qp), static_cast<::dcqcn::Time>(p.sent));
  }
  Ptr<Packet> frame = Content(p, world.scenario.wire, bits, pair);
  BthHeader bth;
  bth.opcode = Opcode(p, pair);
  bth.becn = p.type() == ::dcqcn::Kind::kCnp || p.cnp;
  bth.ack_request = p.is_data();
  bth.reserved = bits.seven;
  bth.destination_qp = p.qp & 0xffffff;
  // an ACK carries the last packet it acknowledges, a NAK the one that it wants
  bth.psn = (p.type() == ::dcqcn::Kind::kAck ? p.seq - 1 : p.seq) & 0xffffff;
  frame->AddHeader(bth);
  RoceUdpHeader udp;
  udp.source_port = p.entropy;
  udp.length = static_cast<uint16_t>(frame->GetSize() + 8 + 4);
  frame->AddHeader(udp);
  RoceIpv4Header ip;
  // what waits in a class has the class's mark; TCP, as it is here, is not ECN capable
  const ::dcqcn::ClassSpec& of_class = world.scenario.classes.of[p.priority];
  const bool in_class = world.scenario.pfc.in_class(p);
  ip.dscp = in_class && (p.is_data() || of_class.tcp) ? static_cast<uint8_t>(of_class.dscp)
                                                      : kControlDscp;
  ip.ecn = p.ecn ? 3 : (p.is_data() && !of_class.tcp ? 2 : 0);
  ip.total_length = static_cast<uint16_t>(frame->GetSize() + 20 + 4);
  ip.source = HostIp(p.is_data() ? pair.src : pair.dst);
  ip.destination = HostIp(p.dst);
  frame->AddHeader(ip);
  AddIcrc(frame);
  const PfcDevice& device = const_cast<DcqcnNode&>(sender).Port(port);
  const Mac48Address to = PortMac(device.Peer()->GetNode()->GetId(), device.Peer()->Index());
  frame->AddHeader(Ethernet(from, to, 0x0800));
  return frame;
}

}  // namespace ns3
