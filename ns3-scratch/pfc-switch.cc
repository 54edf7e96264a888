// SPDX-License-Identifier: GPL-2.0-only
#include "pfc-switch.h"

namespace ns3 {

NS_OBJECT_ENSURE_REGISTERED(PfcSwitch);

TypeId PfcSwitch::GetTypeId() {
  static TypeId tid = TypeId("ns3::PfcSwitch")
                          .SetParent<DcqcnNode>()
                          .SetGroupName("Dcqcn")
                          .AddConstructor<PfcSwitch>();
  return tid;
}

void PfcSwitch::HandlePacket(uint32_t port, const ::dcqcn::Packet& arrived, int64_t now) {
  const ::dcqcn::World& world = World();
  ++world.log.totals.hops;
  const int node = static_cast<int>(GetId());
  PfcDevice& out = *m_ports[world.topology.route(node, arrived.dst, arrived.entropy)];
  if (!world.scenario.pfc.in_class(arrived)) {
    out.QueueControl(arrived);
    out.Kick(now);
    return;
  }
  ::dcqcn::Packet packet = arrived;
  const unsigned priority = static_cast<unsigned>(packet.priority);
  // a packet is counted once, at the first switch on its way
  const bool first =
      m_ports[port]->Peer()->GetNode()->GetId() < static_cast<uint32_t>(world.topology.hosts());
  if (packet.is_data() && first && !packet.retransmit && world.monitor.wants_packets()) {
    world.monitor.record(node - world.topology.hosts(), world.transport.flow_key(packet.qp),
                         static_cast<uint32_t>(packet.bytes - world.scenario.wire.data_overhead));
  }
  if (!m_buffer.admit(port, priority, packet.bytes, world.scenario.pfc.may_drop(packet))) {
    out.CountDrop(packet);
    ++world.log.totals.drops;
    return;
  }
  packet.in_port = static_cast<uint16_t>(port);
  out.QueueData(packet);
  if (m_buffer.should_pause(port, priority)) {
    m_buffer.ingress(port, priority).paused = true;
    SendPfc(port, priority, true, now);
  }
  out.Kick(now);
  out.NoteQueue();
}

void PfcSwitch::Departed(const ::dcqcn::Packet& packet, int64_t now) {
  const unsigned priority = static_cast<unsigned>(packet.priority);
  m_buffer.release(packet.in_port, priority, packet.bytes);
  if (m_buffer.should_resume(packet.in_port, priority)) {
    m_buffer.ingress(packet.in_port, priority).paused = false;
    SendPfc(packet.in_port, priority, false, now);
  }
}

void PfcSwitch::SendPfc(unsigned port, unsigned priority, bool pause, int64_t now) {
  ::dcqcn::Totals& totals = World().log.totals;
  ++(pause ? totals.pauses : totals.resumes);
  m_ports[port]->QueuePfc(static_cast<uint8_t>(priority), pause);
  m_ports[port]->Kick(now);
}

}  // namespace ns3
