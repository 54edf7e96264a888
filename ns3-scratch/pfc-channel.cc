// SPDX-License-Identifier: GPL-2.0-only
#include "pfc-channel.h"

#include "dcqcn-node.h"
#include "ns3/make-event.h"
#include "ns3/nstime.h"
#include "ns3/simulator.h"
#include "pfc-device.h"

namespace ns3 {

NS_OBJECT_ENSURE_REGISTERED(PfcChannel);

TypeId PfcChannel::GetTypeId() {
  static TypeId tid =
      TypeId("ns3::PfcChannel")
          .SetParent<Channel>()
          .SetGroupName("Dcqcn")
          .AddConstructor<PfcChannel>()
          .AddAttribute("Delay", "Propagation delay of the link", TimeValue(MicroSeconds(5)),
                        MakeTimeAccessor(&PfcChannel::m_delay), MakeTimeChecker());
  return tid;
}

PfcChannel::PfcChannel() = default;
PfcChannel::~PfcChannel() = default;

std::size_t PfcChannel::GetNDevices() const { return m_attached; }

Ptr<NetDevice> PfcChannel::GetDevice(std::size_t i) const { return m_devices[i]; }

void PfcChannel::Attach(Ptr<PfcDevice> device) {
  NS_ABORT_MSG_IF(m_attached == 2, "a PfcChannel joins two devices");
  m_devices[m_attached] = device;
  Direction& towards = m_ways[1 - m_attached];
  towards.to = PeekPointer(device);
  const std::size_t way = 1 - m_attached;
  towards.deliver = Ptr<EventImpl>(MakeEvent([this, way] { Deliver(way); }), false);
  ++m_attached;
}

void PfcChannel::Send(const PfcDevice* from, const Flight& flight) {
  Direction& way = m_ways[from == PeekPointer(m_devices[0]) ? 0 : 1];
  way.flights.push(flight);
  if (way.flights.size() == 1) Arm(way);
}

void PfcChannel::Arm(Direction& way) {
  const int64_t arrival = way.flights.front().packet.arrival;
  way.to->SetArrivalDue(arrival);
  way.deliver->Ref();  // the simulator drops one reference when the event has run
  Simulator::ScheduleWithContext(way.to->GetNode()->GetId(),
                                 TimeStep(arrival - Simulator::Now().GetTimeStep()),
                                 PeekPointer(way.deliver));
}

void PfcChannel::Deliver(std::size_t i) {
  Direction& way = m_ways[i];
  const Flight flight = way.flights.pop();
  if (way.flights.empty()) {
    way.to->SetArrivalDue(::dcqcn::kNever);
  } else {
    Arm(way);
  }
  way.to->Receive(flight);
}

void PfcChannel::DoDispose() {
  for (Direction& way : m_ways) way.deliver = nullptr;
  for (Ptr<PfcDevice>& device : m_devices) device = nullptr;
  Channel::DoDispose();
}

}  // namespace ns3
