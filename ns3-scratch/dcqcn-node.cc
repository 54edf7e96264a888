// SPDX-License-Identifier: GPL-2.0-only
#include "dcqcn-node.h"

#include <algorithm>

#include "ns3/simulator.h"

namespace ns3 {

using ::dcqcn::kNever;

NS_OBJECT_ENSURE_REGISTERED(DcqcnNode);

TypeId DcqcnNode::GetTypeId() {
  static TypeId tid = TypeId("ns3::DcqcnNode").SetParent<Node>().SetGroupName("Dcqcn");
  return tid;
}

void DcqcnNode::Attach(const ::dcqcn::World* world, MessageEnds* messages, bool alwaysCollect) {
  m_world = world;
  m_messages = messages;
  m_alwaysCollect = alwaysCollect;
}

void DcqcnNode::AddPort(Ptr<PfcDevice> device) {
  m_ports.push_back(device);
  m_arrivalDue.push_back(kNever);
  m_wakeDue.push_back(kNever);
  AddDevice(device);
}

bool DcqcnNode::NoteWake(uint32_t port, int64_t when) {
  if (m_dequeuing && when == Simulator::Now().GetTimeStep()) {
    m_wakes.push_back(port);  // the dequeues of this instant are still to come
    return false;
  }
  if (when >= m_wakeDue[port]) return false;
  m_wakeDue[port] = when;
  return true;
}

bool DcqcnNode::Busy(int64_t now) const {
  if (m_collecting || m_alwaysCollect) return true;
  bool more = false;
  for (int64_t due : m_arrivalDue) more |= due == now;
  for (int64_t due : m_wakeDue) more |= due == now;
  return more;
}

void DcqcnNode::Collect() {
  if (m_collecting) return;
  m_collecting = true;
  // everything of this instant was scheduled before it began, so this runs last
  Simulator::ScheduleNow(&DcqcnNode::Work, this);
}

void DcqcnNode::OnArrival(uint32_t port, const Flight& flight) {
  const int64_t now = Simulator::Now().GetTimeStep();
  if (Busy(now)) {
    m_arrivals.push_back({port, flight});
    Collect();
  } else if (flight.pfc != Flight::kNone) {
    if (m_ports[port]->TakePfc(flight, now)) m_ports[port]->Kick(now);
  } else {
    HandlePacket(port, flight.packet, now);
    HandleFlows(now);
  }
}

void DcqcnNode::OnWake(uint32_t port) {
  const int64_t now = Simulator::Now().GetTimeStep();
  if (m_wakeDue[port] != now) return;  // an earlier one took its place
  m_wakeDue[port] = kNever;
  if (Busy(now)) {
    m_wakes.push_back(port);
    Collect();
  } else {
    m_ports[port]->Serve(now);
  }
}

void DcqcnNode::Work() {
  const int64_t now = Simulator::Now().GetTimeStep();
  std::sort(m_arrivals.begin(), m_arrivals.end(),
            [](const Arrival& a, const Arrival& b) { return a.port < b.port; });
  m_dequeuing = true;
  for (const Arrival& a : m_arrivals) {
    if (a.flight.pfc != Flight::kNone && m_ports[a.port]->TakePfc(a.flight, now)) {
      m_ports[a.port]->Wake(now);
    }
  }
  HandleTimers(now);
  m_dequeuing = false;
  std::sort(m_wakes.begin(), m_wakes.end());
  for (std::size_t i = 0; i < m_wakes.size(); ++i) m_ports[m_wakes[i]]->Serve(now);
  m_wakes.clear();
  for (const Arrival& a : m_arrivals) {
    if (a.flight.pfc == Flight::kNone) HandlePacket(a.port, a.flight.packet, now);
  }
  m_arrivals.clear();
  HandleFlows(now);
  m_collecting = false;
}

void DcqcnNode::DoDispose() {
  m_ports.clear();
  m_world = nullptr;
  Node::DoDispose();
}

}  // namespace ns3
