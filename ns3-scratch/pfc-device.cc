// SPDX-License-Identifier: GPL-2.0-only
#include "pfc-device.h"

#include <stdexcept>

#include "dcqcn-node.h"
#include "frame.h"
#include "knob-attributes.h"
#include "model/fabric/ecn.hpp"
#include "ns3/make-event.h"
#include "ns3/simulator.h"
#include "ns3/trace-source-accessor.h"
#include "roce-headers.h"

namespace ns3 {

using ::dcqcn::kNever;

NS_OBJECT_ENSURE_REGISTERED(PfcDevice);

TypeId PfcDevice::GetTypeId() {
  static TypeId tid = [] {
    TypeId id = TypeId("ns3::PfcDevice")
                    .SetParent<NetDevice>()
                    .SetGroupName("Dcqcn")
                    .AddConstructor<PfcDevice>()
                    .AddTraceSource("PhyTxBegin", "A frame starts on the wire",
                                    MakeTraceSourceAccessor(&PfcDevice::m_txBegin),
                                    "ns3::Packet::TracedCallback")
                    .AddTraceSource("PhyRxEnd", "A frame has been received whole",
                                    MakeTraceSourceAccessor(&PfcDevice::m_rxEnd),
                                    "ns3::Packet::TracedCallback")
                    .AddTraceSource(
                        "Drop", "The shared buffer had no room for a packet for this port",
                        MakeTraceSourceAccessor(&PfcDevice::m_drop), "ns3::Packet::TracedCallback")
                    .AddTraceSource("EcnMark", "A packet was marked as it left the queue",
                                    MakeTraceSourceAccessor(&PfcDevice::m_mark),
                                    "ns3::Packet::TracedCallback")
                    .AddTraceSource("Pause", "A priority of this port was paused (true) or resumed",
                                    MakeTraceSourceAccessor(&PfcDevice::m_pauseChange),
                                    "ns3::PfcDevice::PauseCallback");
    AddKnobs(id, ::dcqcn::kEcnKnobs, &PfcDevice::m_knobs);
    AddOptionalKnobs(id, ::dcqcn::kPfcKnobs, &PfcDevice::m_pfcKnobs);
    return id;
  }();
  return tid;
}

PfcDevice::PfcDevice() {
  m_wakeEvent = Ptr<EventImpl>(MakeEvent([this] { m_node->OnWake(m_index); }), false);
}

PfcDevice::~PfcDevice() = default;

// ---- building ----

void PfcDevice::Install(Ptr<DcqcnNode> node, uint32_t index, uint32_t global, int64_t psPerByte) {
  m_node = PeekPointer(node);
  m_index = index;
  m_global = global;
  m_psPerByte = psPerByte;
}

void PfcDevice::SetChannel(Ptr<PfcChannel> channel) {
  m_channel = channel;
  m_delay = channel->DelayPs();
  channel->Attach(this);
}

void PfcDevice::SeedMarking(uint64_t seed) {
  m_model.draws = ::dcqcn::RandomStream(seed, ::dcqcn::Purpose::kMarking, m_global);
}

void PfcDevice::EnablePcap(Ptr<PcapFileWrapper> file) { m_pcap = file; }

// ---- egress ----

void PfcDevice::QueuePfc(uint8_t priority, bool pause) {
  ++m_model.counters.pfc_sent;
  m_pfc.push({priority, pause});
}

void PfcDevice::QueueData(const ::dcqcn::Packet& packet) {
  const unsigned priority = packet.priority;
  m_data[priority].push(packet);
  m_queued[priority] += packet.bytes;
  m_model.queued_total += packet.bytes;
}

void PfcDevice::CountDrop(const ::dcqcn::Packet& packet) {
  ++m_model.counters.dropped;
  if (!m_drop.IsEmpty()) m_drop(MakeFrame({packet, Flight::kNone}, *m_node, m_index));
}

void PfcDevice::Wake(int64_t when) {
  when = std::max(when, m_busy);
  if (!m_node->NoteWake(m_index, when)) return;
  m_wakeEvent->Ref();  // the simulator drops one reference when the event has run
  Simulator::ScheduleWithContext(m_node->GetId(), TimeStep(when - Simulator::Now().GetTimeStep()),
                                 PeekPointer(m_wakeEvent));
}

void PfcDevice::Kick(int64_t now) {
  if (m_busy <= now) {
    Serve(now);
  } else {
    Wake(m_busy);
  }
}

void PfcDevice::Serve(int64_t now) {
  if (m_busy > now) return;
  if (!m_pfc.empty()) {
    TransmitPfc(now);
  } else if (!m_control.empty()) {
    Transmit(m_control.pop(), now);
  } else if (m_node->IsHost()) {
    ::dcqcn::Packet packet;
    int64_t next = kNever;
    if (!m_node->NextFromQueuePairs(now, packet, next)) {
      if (next != kNever) Wake(next);
      return;
    }
    Transmit(packet, now);
  } else if (const unsigned ready = ReadyPriorities()) {
    TransmitData(PickPriority(ready), now);
  } else {
    return;
  }
  m_node->ForgetWake(m_index);  // one that was pending for an instant before m_busy is void
  if (HasWork()) Wake(m_busy);
}

bool PfcDevice::HasWork() const {
  return m_node->IsHost() || !m_pfc.empty() || !m_control.empty() || ReadyPriorities() != 0;
}

unsigned PfcDevice::ReadyPriorities() const {
  unsigned ready = 0;
  if (m_model.queued_total == 0) return ready;
  for (unsigned p = 0; p < 8; ++p) {
    if (!m_data[p].empty() && !Paused(p)) ready |= 1u << p;
  }
  return ready;
}

unsigned PfcDevice::PickPriority(unsigned ready) {
  const ::dcqcn::Scenario& scenario = m_node->World().scenario;
  if (scenario.classes.declared) {
    const ::dcqcn::Bytes frame = scenario.wire.payload + scenario.wire.data_overhead;
    const unsigned chosen =
        m_deficits.pick(ready, m_lastServed, scenario.classes, frame,
                        [this](unsigned p) { return ::dcqcn::Bytes{m_data[p].front().bytes}; });
    m_deficits.sent(chosen, m_data[chosen].front().bytes, m_data[chosen].size() == 1);
    return chosen;
  }
  unsigned priority = m_lastServed;
  do priority = (priority + 1) & 7;
  while (!(ready >> priority & 1));
  return priority;
}

void PfcDevice::Transmit(::dcqcn::Packet packet, int64_t now) {
  m_busy = now + packet.bytes * m_psPerByte;
  packet.arrival = m_busy + m_delay;
  // at switches everything in the data class counts
  if (packet.is_data() || (!m_node->IsHost() && m_node->World().scenario.pfc.in_class(packet))) {
    m_model.counters.tx_bytes += packet.bytes;
    ++m_model.counters.tx_packets;
  }
  const Flight flight{packet, Flight::kNone};
  if (m_pcap || !m_txBegin.IsEmpty()) Observe(flight, true);
  m_channel->Send(this, flight);
}

void PfcDevice::TransmitData(unsigned priority, int64_t now) {
  m_lastServed = priority;
  ::dcqcn::Packet packet = m_data[priority].pop();
  m_queued[priority] -= packet.bytes;
  m_model.queued_total -= packet.bytes;
  ::dcqcn::Totals& totals = m_node->World().log.totals;
  const ::dcqcn::EcnSetting& curve = m_node->World().scenario.classes.curve(priority, m_model.ecn);
  const bool marked = ::dcqcn::mark_departing(m_model, curve, packet, m_queued[priority], totals);
  if (marked && !m_mark.IsEmpty()) {
    m_mark(MakeFrame({packet, Flight::kNone}, *m_node, m_index));
  }
  Transmit(packet, now);
  m_node->Departed(packet, now);
}

void PfcDevice::TransmitPfc(int64_t now) {
  const PfcRequest request = m_pfc.pop();
  m_busy = now + m_node->World().scenario.wire.pfc * m_psPerByte;
  Flight flight{{}, request.pause ? Flight::kPause : Flight::kResume};
  flight.packet.arrival = m_busy + m_delay;
  flight.packet.priority = request.priority;
  if (m_pcap || !m_txBegin.IsEmpty()) Observe(flight, true);
  m_channel->Send(this, flight);
}

// ---- ingress ----

void PfcDevice::SetArrivalDue(int64_t when) { m_node->NoteArrival(m_index, when); }

void PfcDevice::Receive(const Flight& flight) {
  if (m_pcap || !m_rxEnd.IsEmpty()) Observe(flight, false);
  m_node->OnArrival(m_index, flight);
}

bool PfcDevice::TakePfc(const Flight& flight, int64_t now) {
  const unsigned priority = flight.packet.priority;
  const bool pause = flight.pfc == Flight::kPause;
  ++m_model.counters.pfc_received;
  if (!m_model.pause.take(priority, pause, now)) return false;
  m_node->PauseChanged(priority, pause, now);
  m_pauseChange(static_cast<uint8_t>(priority), pause);
  return !pause;
}

void PfcDevice::Observe(const Flight& flight, bool sent) {
  // a frame is built from its sender's point of view
  const PfcDevice& sender = sent ? *this : *m_peer;
  Ptr<Packet> frame = MakeFrame(flight, *sender.m_node, sender.m_index);
  if (m_pcap) {
    m_pcap->Write(Simulator::Now(), frame);
    if (m_pcap->Fail()) {
      throw std::runtime_error("a capture file cannot be written any more; is the disk full?");
    }
  }
  if (sent) {
    m_txBegin(frame);
  } else {
    m_rxEnd(frame);
  }
}

// ---- NetDevice ----

Ptr<Channel> PfcDevice::GetChannel() const { return m_channel; }
void PfcDevice::SetAddress(Address) {}
Address PfcDevice::GetAddress() const { return PortMac(m_node->GetId(), m_index); }
bool PfcDevice::SetMtu(const uint16_t mtu) {
  m_mtu = mtu;
  return true;
}
Address PfcDevice::GetBroadcast() const { return Mac48Address::GetBroadcast(); }
Address PfcDevice::GetMulticast(Ipv4Address group) const {
  return Mac48Address::GetMulticast(group);
}
Address PfcDevice::GetMulticast(Ipv6Address group) const {
  return Mac48Address::GetMulticast(group);
}
Ptr<Node> PfcDevice::GetNode() const { return m_node; }
void PfcDevice::SetNode(Ptr<Node>) {}

void PfcDevice::DoDispose() {
  m_channel = nullptr;
  m_wakeEvent = nullptr;
  m_pcap = nullptr;
  m_peer = nullptr;
  NetDevice::DoDispose();
}

}  // namespace ns3
