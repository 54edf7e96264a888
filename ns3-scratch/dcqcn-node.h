// SPDX-License-Identifier: GPL-2.0-only
// What NIC hosts and switches have in common: everything that happens at one node in one
// picosecond happens in one order, the order of the native engine.
#ifndef DCQCN_DCQCN_NODE_H
#define DCQCN_DCQCN_NODE_H

#include <vector>

#include "message-ends.h"
#include "ns3/node.h"
#include "pfc-device.h"
#include "sim/engine.hpp"

namespace ns3 {

/// ns-3 runs events of one instant in the order of their scheduling, which says nothing about the
/// network. A node therefore looks whether more is due at the same instant; if so it collects
/// until all of it is there, and then works in this order: pause frames take effect, timers,
/// dequeues by port, arrivals by port, flow starts.
class DcqcnNode : public Node {
 public:
  static TypeId GetTypeId();

  void Attach(const ::dcqcn::World* world, MessageEnds* messages, bool alwaysCollect);
  void AddPort(Ptr<PfcDevice> device);
  PfcDevice& Port(uint32_t index) { return *m_ports[index]; }
  const ::dcqcn::World& World() const { return *m_world; }
  /// Of all queue pairs of the network.
  const MessageEnds& Messages() const { return *m_messages; }
  virtual bool IsHost() const = 0;

  // ---- what is due, told by the ports ----
  void NoteArrival(uint32_t port, int64_t when) { m_arrivalDue[port] = when; }
  /// False if the port will be served at that instant anyway.
  bool NoteWake(uint32_t port, int64_t when);
  void ForgetWake(uint32_t port) { m_wakeDue[port] = ::dcqcn::kNever; }

  // ---- ns-3 events ----
  void OnArrival(uint32_t port, const Flight& flight);
  void OnWake(uint32_t port);

  // ---- called by the ports ----
  /// The packet that a NIC starts at `now`; else when the first one may start.
  virtual bool NextFromQueuePairs(int64_t now, ::dcqcn::Packet& packet, int64_t& next) = 0;
  /// A data packet has left a switch's queue.
  virtual void Departed(const ::dcqcn::Packet& packet, int64_t now) = 0;
  /// A priority of a port was paused or resumed.
  virtual void PauseChanged(unsigned /*priority*/, bool /*paused*/, int64_t /*now*/) {}

 protected:
  void DoDispose() override;
  virtual void HandlePacket(uint32_t port, const ::dcqcn::Packet& packet, int64_t now) = 0;
  virtual void HandleTimers(int64_t now) = 0;
  virtual void HandleFlows(int64_t now) = 0;
  /// True if this instant has more in store, or is being collected.
  bool Busy(int64_t now) const;
  void Collect();

  const ::dcqcn::World* m_world = nullptr;
  MessageEnds* m_messages = nullptr;
  std::vector<Ptr<PfcDevice>> m_ports;

 private:
  struct Arrival {
    uint32_t port;
    Flight flight;
  };
  void Handle(uint32_t port, const Flight& flight, int64_t now);
  void Work();

  std::vector<int64_t> m_arrivalDue;
  std::vector<int64_t> m_wakeDue;
  std::vector<Arrival> m_arrivals;
  std::vector<uint32_t> m_wakes;
  bool m_alwaysCollect = false;
  bool m_collecting = false;
  bool m_dequeuing = false;  // in Work(), before the dequeues
};

}  // namespace ns3
#endif
