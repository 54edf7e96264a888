// SPDX-License-Identifier: GPL-2.0-only
// A host with one RDMA NIC: queue pairs, pacing, acknowledgements, the DCQCN end points.
#ifndef DCQCN_RDMA_HOST_H
#define DCQCN_RDMA_HOST_H

#include <array>
#include <functional>

#include "dcqcn-node.h"
#include "model/schemes/dcqcn_knobs.hpp"

namespace ns3 {

/// Every NIC knob of DCQCN is an attribute, in SI units, with NVIDIA's default: the rows of
/// model/schemes/dcqcn_knobs.hpp.
class RdmaHost : public DcqcnNode {
 public:
  using KnobValues = std::array<double, ::dcqcn::kDcqcnKnobs.size()>;
  static TypeId GetTypeId();
  RdmaHost();

  bool IsHost() const override { return true; }
  /// A flow of the workload starts now at this host.
  void OnFlow(const ::dcqcn::FlowStart& flow);
  /// Called after flows of this host have completed: closed loops may go on.
  void SetFinishedCallback(std::function<void()> callback) { m_onFinished = std::move(callback); }
  /// Called when jobs have made something due at hosts.
  void SetWokenCallback(std::function<void()> callback) { m_onWoken = std::move(callback); }
  /// The first event of a job at this host, as it stands.
  void ArmJobs();
  /// Looks again at what may be sent (a setting has changed).
  void SettingsChanged(int64_t now) { m_ports[0]->Wake(now); }
  /// The attributes, in the order of the knob table.
  const KnobValues& Knobs() const { return m_knobs; }

  bool NextFromQueuePairs(int64_t now, ::dcqcn::Packet& packet, int64_t& next) override;
  void Departed(const ::dcqcn::Packet&, int64_t) override {}
  void PauseChanged(unsigned priority, bool paused, int64_t now) override;
  /// The NIC-wide timer of the scheme, as it stands.
  void ArmTick();

 protected:
  void HandlePacket(uint32_t port, const ::dcqcn::Packet& packet, int64_t now) override;
  void HandleTimers(int64_t now) override;
  void HandleFlows(int64_t now) override;

 private:
  void HandleData(const ::dcqcn::Packet& packet, int64_t now);
  void HandleReply(const ::dcqcn::Packet& packet, int64_t now);
  void StartFlow(const ::dcqcn::FlowStart& flow, int64_t now);
  void SendReplies(const ::dcqcn::Replies& replies);
  void ArmRto(const ::dcqcn::Qp& qp);
  void OnRto(uint32_t ref);
  void HandleRto(uint32_t ref, int64_t now);
  void OnTick();
  void OnJob();
  void OnDelayedCnp();
  void ReportFinished(std::size_t before);

  std::function<void()> m_onFinished, m_onWoken;
  KnobValues m_knobs{};
  std::vector<uint32_t> m_slots;  // QP slot or kNone: the places of the round robin
  uint32_t m_lastServed = 0;
  ::dcqcn::Ring<::dcqcn::Packet> m_delayedCnps;
  std::vector<uint32_t> m_expired;
  uint32_t m_cnpsDue = 0;
  int64_t m_tickDue = ::dcqcn::kNever;  // of the pending event
  int64_t m_jobDue = ::dcqcn::kNever;   // likewise
  std::vector<::dcqcn::FlowStart> m_chained, m_flows, m_fromJobs;

  TracedCallback<uint32_t, uint32_t, uint64_t> m_flowStart;
  TracedCallback<uint32_t, uint32_t, uint64_t, Time> m_flowEnd;
  TracedCallback<uint32_t, uint64_t> m_cnp;
};

}  // namespace ns3
#endif
