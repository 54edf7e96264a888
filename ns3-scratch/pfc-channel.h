// SPDX-License-Identifier: GPL-2.0-only
// A full-duplex link: each direction is a FIFO of frames in flight, exact in picoseconds.
#ifndef DCQCN_PFC_CHANNEL_H
#define DCQCN_PFC_CHANNEL_H

#include "model/base/ring.hpp"
#include "model/fabric/packet.hpp"
#include "ns3/channel.h"
#include "ns3/event-impl.h"
#include "ns3/nstime.h"

namespace ns3 {

class PfcDevice;

/// A frame on the wire: a packet of the model, or a pause frame.
struct Flight {
  enum Pfc : uint8_t { kNone, kPause, kResume };
  ::dcqcn::Packet packet;  ///< of a pause frame only `arrival` and `priority` count
  Pfc pfc = kNone;
};

/// Joins two PfcDevices. Frames of a direction arrive in the order of sending, so only the first
/// of each direction has an event in the simulator.
class PfcChannel : public Channel {
 public:
  static TypeId GetTypeId();
  PfcChannel();
  ~PfcChannel() override;

  std::size_t GetNDevices() const override;
  Ptr<NetDevice> GetDevice(std::size_t i) const override;

  void Attach(Ptr<PfcDevice> device);
  /// Puts a frame on the wire; its `arrival` is the instant at which its last bit is received.
  void Send(const PfcDevice* from, const Flight& flight);
  int64_t DelayPs() const { return m_delay.GetTimeStep(); }

 protected:
  void DoDispose() override;

 private:
  struct Direction {
    PfcDevice* to = nullptr;
    ::dcqcn::Ring<Flight> flights;
    Ptr<EventImpl> deliver;  ///< one event object for all frames: never in the queue twice
  };
  void Arm(Direction& way);
  void Deliver(std::size_t way);

  Time m_delay;
  std::size_t m_attached = 0;
  Ptr<PfcDevice> m_devices[2];
  Direction m_ways[2];
};

}  // namespace ns3
#endif
