// SPDX-License-Identifier: GPL-2.0-only
// From a packet of the model to the bytes of a real frame. Only captures and trace sinks need it.
#ifndef DCQCN_FRAME_H
#define DCQCN_FRAME_H

#include "ns3/packet.h"
#include "pfc-channel.h"

namespace ns3 {

class DcqcnNode;

/// The Ethernet frame, without its FCS, that port `port` of `sender` puts on the wire. Sizes are
/// those of the default wire profile: payload + 62, ACK 66, CNP 78, pause 64, less 4 of FCS.
Ptr<Packet> MakeFrame(const Flight& flight, const DcqcnNode& sender, uint32_t port);

}  // namespace ns3
#endif
