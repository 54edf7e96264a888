// SPDX-License-Identifier: GPL-2.0-only
// A shared-buffer switch: ECMP, dynamic thresholds, pause frames, the traffic monitor of a ToR.
#ifndef DCQCN_PFC_SWITCH_H
#define DCQCN_PFC_SWITCH_H

#include "dcqcn-node.h"
#include "model/fabric/shared_buffer.hpp"

namespace ns3 {

class PfcSwitch : public DcqcnNode {
 public:
  static TypeId GetTypeId();

  bool IsHost() const override { return false; }
  void SetBuffer(const ::dcqcn::SharedBuffer& buffer) { m_buffer = buffer; }
  ::dcqcn::SharedBuffer& Buffer() { return m_buffer; }

  bool NextFromQueuePairs(int64_t, ::dcqcn::Packet&, int64_t&) override { return false; }
  void Departed(const ::dcqcn::Packet& packet, int64_t now) override;

 protected:
  void HandlePacket(uint32_t port, const ::dcqcn::Packet& packet, int64_t now) override;
  void HandleTimers(int64_t) override {}
  void HandleFlows(int64_t) override {}

 private:
  void SendPfc(unsigned port, unsigned priority, bool pause, int64_t now);

  ::dcqcn::SharedBuffer m_buffer;
};

}  // namespace ns3
#endif
