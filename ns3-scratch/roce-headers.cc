// SPDX-License-Identifier: GPL-2.0-only
#include "roce-headers.h"

namespace ns3 {

NS_OBJECT_ENSURE_REGISTERED(RoceIpv4Header);
NS_OBJECT_ENSURE_REGISTERED(RoceUdpHeader);
NS_OBJECT_ENSURE_REGISTERED(BthHeader);
NS_OBJECT_ENSURE_REGISTERED(AethHeader);
NS_OBJECT_ENSURE_REGISTERED(PfcHeader);

namespace {

template <class T>
TypeId HeaderId(const char* name) {
  return TypeId(name).SetParent<Header>().SetGroupName("Dcqcn").template AddConstructor<T>();
}

void WriteU24(Buffer::Iterator& i, uint32_t value) {
  i.WriteU8(static_cast<uint8_t>(value >> 16));
  i.WriteHtonU16(static_cast<uint16_t>(value));
}

uint32_t ReadU24(Buffer::Iterator& i) {
  const uint32_t high = i.ReadU8();
  return (high << 16) | i.ReadNtohU16();
}

}  // namespace

TypeId RoceIpv4Header::GetTypeId() {
  static TypeId tid = HeaderId<RoceIpv4Header>("ns3::RoceIpv4Header");
  return tid;
}

void RoceIpv4Header::Serialize(Buffer::Iterator start) const {
  Buffer::Iterator i = start;
  i.WriteU8(0x45);
  i.WriteU8(static_cast<uint8_t>(dscp << 2 | ecn));
  i.WriteHtonU16(total_length);
  i.WriteHtonU16(identification);
  i.WriteHtonU16(0x4000);
  i.WriteU8(ttl);
  i.WriteU8(17);
  i.WriteHtonU16(0);
  WriteTo(i, source);
  WriteTo(i, destination);
  Buffer::Iterator sum = start;
  const uint16_t checksum = sum.CalculateIpChecksum(20);
  sum = start;
  sum.Next(10);
  sum.WriteU16(checksum);
}

uint32_t RoceIpv4Header::Deserialize(Buffer::Iterator start) {
  Buffer::Iterator i = start;
  i.ReadU8();
  const uint8_t tos = i.ReadU8();
  dscp = tos >> 2;
  ecn = tos & 3;
  total_length = i.ReadNtohU16();
  identification = i.ReadNtohU16();
  i.ReadU16();
  ttl = i.ReadU8();
  i.ReadU8();
  i.ReadU16();
  ReadFrom(i, source);
  ReadFrom(i, destination);
  return 20;
}

void RoceIpv4Header::Print(std::ostream& os) const {
  os << source << " > " << destination << " dscp " << +dscp << " ecn " << +ecn;
}

TypeId RoceUdpHeader::GetTypeId() {
  static TypeId tid = HeaderId<RoceUdpHeader>("ns3::RoceUdpHeader");
  return tid;
}

void RoceUdpHeader::Serialize(Buffer::Iterator start) const {
  start.WriteHtonU16(source_port);
  start.WriteHtonU16(kPort);
  start.WriteHtonU16(length);
  start.WriteHtonU16(0);
}

uint32_t RoceUdpHeader::Deserialize(Buffer::Iterator start) {
  source_port = start.ReadNtohU16();
  start.ReadU16();
  length = start.ReadNtohU16();
  start.ReadU16();
  return 8;
}

void RoceUdpHeader::Print(std::ostream& os) const {
  os << source_port << " > " << kPort << " length " << length;
}

TypeId BthHeader::GetTypeId() {
  static TypeId tid = HeaderId<BthHeader>("ns3::BthHeader");
  return tid;
}

void BthHeader::Serialize(Buffer::Iterator start) const {
  start.WriteU8(opcode);
  start.WriteU8(static_cast<uint8_t>(pad << 4));
  start.WriteHtonU16(0xffff);
  start.WriteU8(static_cast<uint8_t>(fecn << 7 | becn << 6));
  WriteU24(start, destination_qp);
  start.WriteU8(static_cast<uint8_t>(ack_request << 7 | (reserved & 0x7f)));
  WriteU24(start, psn);
}

uint32_t BthHeader::Deserialize(Buffer::Iterator start) {
  opcode = start.ReadU8();
  pad = (start.ReadU8() >> 4) & 3;
  start.ReadU16();
  const uint8_t bits = start.ReadU8();
  fecn = bits >> 7;
  becn = (bits >> 6) & 1;
  destination_qp = ReadU24(start);
  const uint8_t request = start.ReadU8();
  ack_request = request >> 7;
  reserved = request & 0x7f;
  psn = ReadU24(start);
  return 12;
}

void BthHeader::Print(std::ostream& os) const {
  os << "opcode " << +opcode << " qp " << destination_qp << " psn " << psn;
}

TypeId AethHeader::GetTypeId() {
  static TypeId tid = HeaderId<AethHeader>("ns3::AethHeader");
  return tid;
}

void AethHeader::Serialize(Buffer::Iterator start) const {
  start.WriteU8(negative ? 0x60 : 0x1f);  // 0x1f: no credit count
  WriteU24(start, msn);
}

uint32_t AethHeader::Deserialize(Buffer::Iterator start) {
  negative = start.ReadU8() == 0x60;
  msn = ReadU24(start);
  return 4;
}

void AethHeader::Print(std::ostream& os) const {
  os << (negative ? "NAK" : "ACK") << " msn " << msn;
}

TypeId PfcHeader::GetTypeId() {
  static TypeId tid = HeaderId<PfcHeader>("ns3::PfcHeader");
  return tid;
}

void PfcHeader::Serialize(Buffer::Iterator start) const {
  start.WriteHtonU16(0x0101);
  start.WriteHtonU16(enabled);
  for (uint16_t time : quanta) start.WriteHtonU16(time);
}

uint32_t PfcHeader::Deserialize(Buffer::Iterator start) {
  start.ReadU16();
  enabled = static_cast<uint8_t>(start.ReadNtohU16());
  for (uint16_t& time : quanta) time = start.ReadNtohU16();
  return 20;
}

void PfcHeader::Print(std::ostream& os) const {
  os << "pfc enabled " << +enabled;
  for (uint16_t time : quanta) os << ' ' << time;
}

Mac48Address PortMac(uint32_t node, uint32_t port) {
  const uint8_t bytes[6] = {0x02,
                            0x00,
                            static_cast<uint8_t>(node >> 8),
                            static_cast<uint8_t>(node),
                            static_cast<uint8_t>(port >> 8),
                            static_cast<uint8_t>(port)};
  Mac48Address address;
  address.CopyFrom(bytes);
  return address;
}

Ipv4Address HostIp(uint32_t host) { return Ipv4Address(0x0b000001u + host); }

uint32_t InvariantCrc(const uint8_t* frame, uint32_t size) {
  // 64 one bits stand for the fields of the local route header; what a switch may change (TOS,
  // TTL, both checksums, FECN and BECN with their reserved bits) counts as ones
  uint32_t crc = 0xffffffffu;
  const auto add = [&crc](uint8_t byte) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0xedb88320u : 0);
  };
  for (int i = 0; i < 8; ++i) add(0xff);
  for (uint32_t i = 0; i < size; ++i) {
    const bool masked = i == 1 || i == 8 || i == 10 || i == 11 || i == 26 || i == 27 || i == 32;
    add(masked ? 0xff : frame[i]);
  }
  return ~crc;
}

}  // namespace ns3
