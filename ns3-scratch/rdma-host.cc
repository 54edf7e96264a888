// SPDX-License-Identifier: GPL-2.0-only
#include "rdma-host.h"

#include "knob-attributes.h"
#include "ns3/simulator.h"
#include "ns3/trace-source-accessor.h"

namespace ns3 {

using ::dcqcn::kNever;
using ::dcqcn::kNone;

NS_OBJECT_ENSURE_REGISTERED(RdmaHost);

TypeId RdmaHost::GetTypeId() {
  static TypeId tid = [] {
    TypeId id = TypeId("ns3::RdmaHost")
                    .SetParent<DcqcnNode>()
                    .SetGroupName("Dcqcn")
                    .AddConstructor<RdmaHost>()
                    .AddTraceSource("FlowStart", "A flow starts here: source, destination, bytes",
                                    MakeTraceSourceAccessor(&RdmaHost::m_flowStart),
                                    "ns3::RdmaHost::FlowStartCallback")
                    .AddTraceSource("FlowEnd",
                                    "The last ACK of a flow came: source, destination, bytes, "
                                    "completion time",
                                    MakeTraceSourceAccessor(&RdmaHost::m_flowEnd),
                                    "ns3::RdmaHost::FlowEndCallback")
                    .AddTraceSource("Cnp", "A CNP came: queue pair and its rate now [bit/s]",
                                    MakeTraceSourceAccessor(&RdmaHost::m_cnp),
                                    "ns3::RdmaHost::CnpCallback");
    AddKnobs(id, ::dcqcn::kDcqcnKnobs, &RdmaHost::m_knobs);
    return id;
  }();
  return tid;
}

RdmaHost::RdmaHost() = default;

// ---- sending ----

bool RdmaHost::NextFromQueuePairs(int64_t now, ::dcqcn::Packet& packet, int64_t& next) {
  ::dcqcn::TransportLayer& transport = World().transport;
  const uint32_t n = static_cast<uint32_t>(m_slots.size());
  next = kNever;
  uint32_t place = m_lastServed;
  for (uint32_t i = 0; i < n; ++i) {
    if (++place >= n) place = 0;
    if (m_slots[place] == kNone) continue;
    ::dcqcn::Qp& qp = transport.qp(m_slots[place]);
    if (!qp.may_send() || m_ports[0]->Paused(qp.priority)) continue;
    if (qp.next_send > now) {
      next = std::min(next, qp.next_send);
      continue;
    }
    m_lastServed = place;
    packet = transport.send(qp, now);
    m_messages->Sent(packet, GetId());
    if (transport.must_arm(qp)) ArmRto(qp);
    return true;
  }
  return false;
}

void RdmaHost::OnFlow(const ::dcqcn::FlowStart& flow) {
  const int64_t now = Simulator::Now().GetTimeStep();
  if (Busy(now)) {
    m_flows.push_back(flow);
    Collect();
  } else {
    StartFlow(flow, now);
  }
}

void RdmaHost::StartFlow(const ::dcqcn::FlowStart& flow, int64_t now) {
  const uint32_t slot = World().transport.start_flow(flow, now);
  ::dcqcn::Qp& qp = World().transport.qp(slot);
  if (qp.nic_slot == kNone) {  // the lowest free place
    uint32_t place = 0;
    while (place < m_slots.size() && m_slots[place] != kNone) ++place;
    if (place == m_slots.size()) m_slots.push_back(kNone);
    m_slots[place] = slot;
    qp.nic_slot = place;
  }
  m_flowStart(flow.src, flow.dst, flow.bytes);
  ArmTick();
  m_ports[0]->Kick(now);
}

void RdmaHost::HandleFlows(int64_t now) {
  for (std::size_t i = 0; i < m_chained.size(); ++i) StartFlow(m_chained[i], now);
  const int host = static_cast<int>(GetId());
  ::dcqcn::Jobs& jobs = World().source.jobs();
  while (jobs.due(host) == now) {
    m_fromJobs.clear();
    jobs.happen(host, m_fromJobs);
    for (const ::dcqcn::FlowStart& flow : m_fromJobs) StartFlow(flow, now);
  }
  for (std::size_t i = 0; i < m_flows.size(); ++i) StartFlow(m_flows[i], now);
  m_chained.clear();
  m_flows.clear();
  if (!jobs.any()) return;
  m_onWoken();
  ArmJobs();
}

void RdmaHost::ArmJobs() {
  const int64_t next = World().source.jobs().due(static_cast<int>(GetId()));
  if (next >= m_jobDue) return;
  m_jobDue = next;
  Simulator::Schedule(TimeStep(next - Simulator::Now().GetTimeStep()), &RdmaHost::OnJob, this);
}

void RdmaHost::OnJob() {
  if (m_jobDue == Simulator::Now().GetTimeStep()) m_jobDue = kNever;
  Collect();
}

// ---- receiving ----

void RdmaHost::HandlePacket(uint32_t, const ::dcqcn::Packet& packet, int64_t now) {
  ++World().log.totals.hops;
  if (packet.is_data()) {
    HandleData(packet, now);
  } else {
    HandleReply(packet, now);
  }
  ArmTick();
}

void RdmaHost::HandleData(const ::dcqcn::Packet& packet, int64_t now) {
  ::dcqcn::TransportLayer& transport = World().transport;
  ::dcqcn::Replies replies;
  transport.on_data(packet, static_cast<int>(GetId()), now, replies);
  m_chained.insert(m_chained.end(), transport.chained.begin(), transport.chained.end());
  transport.chained.clear();
  if (packet.last) m_onFinished();  // it may have made a flow due that starts later
  SendReplies(replies);
  m_ports[0]->Kick(now);
}

void RdmaHost::SendReplies(const ::dcqcn::Replies& replies) {
  replies.hand_over(
      [this](const ::dcqcn::Packet& cnp) {
        m_delayedCnps.push(cnp);
        Simulator::Schedule(TimeStep(World().transport.cnp_delay()), &RdmaHost::OnDelayedCnp, this);
      },
      [this](const ::dcqcn::Packet& packet) { m_ports[0]->QueueControl(packet); });
}

void RdmaHost::HandleReply(const ::dcqcn::Packet& packet, int64_t now) {
  ::dcqcn::TransportLayer& transport = World().transport;
  ::dcqcn::Qp* qp = transport.find(packet.qp);
  if (!qp) return;
  const std::size_t before = World().log.finished.size();
  const ::dcqcn::Then then = transport.on_control(*qp, packet, now);
  if (packet.type() == ::dcqcn::Kind::kCnp) m_cnp(packet.qp, qp->rate);
  if (World().log.finished.size() != before) ReportFinished(before);
  if (then == ::dcqcn::Then::kGone) {
    m_slots[qp->nic_slot] = kNone;
  } else {
    m_ports[0]->Kick(now);
  }
}

void RdmaHost::ReportFinished(std::size_t before) {
  const auto& finished = World().log.finished;
  m_onFinished();
  for (std::size_t i = before; i < finished.size(); ++i) {
    m_flowEnd(finished[i].src, finished[i].dst, finished[i].bytes, TimeStep(finished[i].fct));
  }
}

// ---- timers ----

void RdmaHost::OnDelayedCnp() {
  ++m_cnpsDue;
  Collect();
}

void RdmaHost::ArmRto(const ::dcqcn::Qp& qp) {
  Simulator::Schedule(TimeStep(qp.rto_at - Simulator::Now().GetTimeStep()), &RdmaHost::OnRto, this,
                      qp.ref);
}

void RdmaHost::OnRto(uint32_t ref) {
  m_expired.push_back(ref);
  Collect();
}

void RdmaHost::HandleRto(uint32_t ref, int64_t now) {
  ::dcqcn::Qp* qp = World().transport.find(ref);
  if (!qp) return;
  const ::dcqcn::Then then = World().transport.on_timer(*qp, now);
  if (then == ::dcqcn::Then::kArm) ArmRto(*qp);
  if (then == ::dcqcn::Then::kLookAgain) m_ports[0]->Wake(now);
}

void RdmaHost::ArmTick() {
  const int64_t next = World().transport.next_tick(static_cast<int>(GetId()));
  if (next >= m_tickDue) return;
  m_tickDue = next;
  Simulator::Schedule(TimeStep(next - Simulator::Now().GetTimeStep()), &RdmaHost::OnTick, this);
}

void RdmaHost::OnTick() {
  if (m_tickDue == Simulator::Now().GetTimeStep()) m_tickDue = kNever;
  Collect();
}

void RdmaHost::PauseChanged(unsigned priority, bool paused, int64_t now) {
  World().transport.on_pause(static_cast<int>(GetId()), priority, paused, now);
  ArmTick();
  if (World().transport.windowed()) m_ports[0]->Wake(now);
}

void RdmaHost::HandleTimers(int64_t now) {
  std::sort(m_expired.begin(), m_expired.end());
  for (uint32_t ref : m_expired) HandleRto(ref, now);
  m_expired.clear();
  for (; m_cnpsDue > 0; --m_cnpsDue) {
    m_ports[0]->QueueControl(m_delayedCnps.pop());
    m_ports[0]->Wake(now);
  }
  const int host = static_cast<int>(GetId());
  if (World().transport.next_tick(host) == now) {
    ::dcqcn::Replies replies;
    World().transport.tick(host, now, replies);
    SendReplies(replies);
    m_ports[0]->Wake(now);
  }
  ArmTick();
}

}  // namespace ns3
