// SPDX-License-Identifier: GPL-2.0-only
// One port of a NIC or a switch: egress queues, pause state, ECN marking, counters, captures.
#ifndef DCQCN_PFC_DEVICE_H
#define DCQCN_PFC_DEVICE_H

#include "model/base/metrics.hpp"
#include "model/base/random_stream.hpp"
#include "model/base/ring.hpp"
#include "model/fabric/classes.hpp"
#include "model/fabric/ecn_knobs.hpp"
#include "model/fabric/packet.hpp"
#include "model/fabric/pause.hpp"
#include "model/fabric/pfc_knobs.hpp"
#include "ns3/net-device.h"
#include "ns3/pcap-file-wrapper.h"
#include "ns3/traced-callback.h"
#include "pfc-channel.h"

namespace ns3 {

class DcqcnNode;

/// Egress in the order PFC, ACK and CNP, data. Data of a switch waits in eight priorities (round
/// robin by packet), data of a NIC in its queue pairs. Behaviour comes from the shared model; this
/// class moves packets and time.
class PfcDevice : public NetDevice {
 public:
  using KnobValues = std::array<double, ::dcqcn::kEcnKnobs.size()>;
  static TypeId GetTypeId();
  PfcDevice();
  ~PfcDevice() override;

  // ---- building ----
  /// `index` is the port's number within its node, `global` the one in reports.
  void Install(Ptr<DcqcnNode> node, uint32_t index, uint32_t global, int64_t psPerByte);
  void SetChannel(Ptr<PfcChannel> channel);
  void SeedMarking(uint64_t seed);
  /// The attributes, in the order of the rows in model/fabric/ecn_knobs.hpp.
  const KnobValues& Knobs() const { return m_knobs; }
  /// The attribute of model/fabric/pfc_knobs.hpp; 0: as the compiled scenario says.
  double PfcAlpha() const { return m_pfcKnobs.front(); }
  void EnablePcap(Ptr<PcapFileWrapper> file);

  // ---- egress, called by the node ----
  void QueuePfc(uint8_t priority, bool pause);
  void QueueControl(const ::dcqcn::Packet& packet) { m_control.push(packet); }
  void QueueData(const ::dcqcn::Packet& packet);
  void CountDrop(const ::dcqcn::Packet& packet);
  /// Starts the next frame if the port is free, or makes sure that it will.
  void Kick(int64_t now);
  /// Asks for Serve() at `when`, or when the port is free.
  void Wake(int64_t when);
  /// Starts the next frame if the port is free.
  void Serve(int64_t now);
  void NoteQueue() {
    m_model.counters.max_queue = std::max(m_model.counters.max_queue, m_model.queued_total);
  }

  // ---- ingress ----
  void SetArrivalDue(int64_t when);
  void Receive(const Flight& flight);
  /// A pause frame takes effect; true if the port may have something to send now.
  bool TakePfc(const Flight& flight, int64_t now);
  bool Paused(unsigned priority) const { return m_model.pause.paused(priority); }

  // ---- figures ----
  /// Under the names by which the model reads and resets the figures of any port.
  struct Figures {
    ::dcqcn::Bytes queued_total = 0;
    ::dcqcn::PauseClock pause;
    ::dcqcn::PortCounters counters;
    ::dcqcn::EcnSetting ecn;
    ::dcqcn::RandomStream draws;
  };
  Figures& Model() { return m_model; }

  uint32_t Index() const { return m_index; }
  uint32_t Global() const { return m_global; }
  PfcDevice* Peer() const { return m_peer; }
  void SetPeer(PfcDevice* peer) { m_peer = peer; }

  // ---- NetDevice ----
  void SetIfIndex(const uint32_t index) override { m_ifIndex = index; }
  uint32_t GetIfIndex() const override { return m_ifIndex; }
  Ptr<Channel> GetChannel() const override;
  void SetAddress(Address address) override;
  Address GetAddress() const override;
  bool SetMtu(const uint16_t mtu) override;
  uint16_t GetMtu() const override { return m_mtu; }
  bool IsLinkUp() const override { return true; }
  void AddLinkChangeCallback(Callback<void>) override {}
  bool IsBroadcast() const override { return false; }
  Address GetBroadcast() const override;
  bool IsMulticast() const override { return false; }
  Address GetMulticast(Ipv4Address) const override;
  Address GetMulticast(Ipv6Address) const override;
  bool IsBridge() const override { return false; }
  bool IsPointToPoint() const override { return true; }
  /// Traffic comes from queue pairs: these refuse.
  bool Send(Ptr<Packet>, const Address&, uint16_t) override { return false; }
  bool SendFrom(Ptr<Packet>, const Address&, const Address&, uint16_t) override { return false; }
  Ptr<Node> GetNode() const override;
  void SetNode(Ptr<Node> node) override;
  bool NeedsArp() const override { return false; }
  void SetReceiveCallback(ReceiveCallback) override {}
  void SetPromiscReceiveCallback(PromiscReceiveCallback) override {}
  bool SupportsSendFrom() const override { return false; }

 protected:
  void DoDispose() override;

 private:
  unsigned ReadyPriorities() const;
  unsigned PickPriority(unsigned ready);
  bool HasWork() const;
  void Transmit(::dcqcn::Packet packet, int64_t now);
  void TransmitData(unsigned priority, int64_t now);
  void TransmitPfc(int64_t now);
  void Observe(const Flight& flight, bool sent);

  DcqcnNode* m_node = nullptr;
  PfcDevice* m_peer = nullptr;
  Ptr<PfcChannel> m_channel;
  uint32_t m_index = 0, m_global = 0, m_ifIndex = 0;
  int64_t m_psPerByte = 80, m_delay = 0, m_busy = 0;
  uint16_t m_mtu = 9000;

  struct PfcRequest {
    uint8_t priority = 0;
    bool pause = false;
  };
  ::dcqcn::Ring<PfcRequest> m_pfc;
  ::dcqcn::Ring<::dcqcn::Packet> m_control;
  ::dcqcn::Ring<::dcqcn::Packet> m_data[8];
  ::dcqcn::Bytes m_queued[8] = {};
  unsigned m_lastServed = 7;
  ::dcqcn::Deficits m_deficits;
  Figures m_model;
  KnobValues m_knobs{};
  std::array<double, ::dcqcn::kPfcKnobs.size()> m_pfcKnobs{};

  Ptr<EventImpl> m_wakeEvent;
  Ptr<PcapFileWrapper> m_pcap;
  TracedCallback<Ptr<const Packet>> m_txBegin;
  TracedCallback<Ptr<const Packet>> m_rxEnd;
  TracedCallback<Ptr<const Packet>> m_drop;
  TracedCallback<Ptr<const Packet>> m_mark;
  TracedCallback<uint8_t, bool> m_pauseChange;
};

}  // namespace ns3
#endif
