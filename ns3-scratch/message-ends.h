// SPDX-License-Identifier: GPL-2.0-only
// Where the messages of a host's queue pairs end: what a frame's header says of messages.
#ifndef DCQCN_MESSAGE_ENDS_H
#define DCQCN_MESSAGE_ENDS_H

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "model/packet.hpp"
#include "model/queue_pair.hpp"

namespace ns3 {

/// The last packets of all messages that a NIC has begun to send, by queue pair.
class MessageEnds {
 public:
  /// Tells of a packet that the NIC sends; one that is repeated says nothing new.
  void Sent(const ::dcqcn::Packet& p) {
    if (!p.last) return;
    Ends& ends = m_ends[::dcqcn::slot_of(p.qp)];
    if (ends.qp != p.qp) ends = {p.qp, {}};  // the slot's last queue pair is gone
    if (ends.last.empty() || ends.last.back() < p.seq) ends.last.push_back(p.seq);
  }
  /// Is this the first packet of a message?
  bool Begins(uint32_t qp, uint32_t seq) const {
    const std::vector<uint32_t>& last = Of(qp);
    return seq == 0 || std::binary_search(last.begin(), last.end(), seq - 1);
  }
  /// Messages of which every packet comes before `seq`.
  uint32_t Before(uint32_t qp, uint32_t seq) const {
    const std::vector<uint32_t>& last = Of(qp);
    return static_cast<uint32_t>(std::lower_bound(last.begin(), last.end(), seq) - last.begin());
  }

 private:
  struct Ends {
    uint32_t qp = 0;
    std::vector<uint32_t> last;  // ascending
  };
  const std::vector<uint32_t>& Of(uint32_t qp) const {
    static const std::vector<uint32_t> none;
    const auto at = m_ends.find(::dcqcn::slot_of(qp));
    return at != m_ends.end() && at->second.qp == qp ? at->second.last : none;
  }

  std::unordered_map<uint32_t, Ends> m_ends;  // by slot
};

}  // namespace ns3
#endif
