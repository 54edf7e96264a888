// SPDX-License-Identifier: GPL-2.0-only
// What a frame's headers say of its queue pair, which may be gone while the frame is on its way:
// the two ends, and where the messages end.
#ifndef DCQCN_MESSAGE_ENDS_H
#define DCQCN_MESSAGE_ENDS_H

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/fabric/packet.hpp"
#include "model/flows/queue_pair.hpp"

namespace ns3 {

/// The queue pairs that have begun to send, by slot; of each slot the last ones.
class MessageEnds {
 public:
  class Pair {
   public:
    uint32_t src = 0, dst = 0;

    /// Is this the first packet of a message?
    bool Begins(uint32_t seq) const {
      return seq == 0 || std::binary_search(m_last.begin(), m_last.end(), seq - 1);
    }
    /// Messages of which every packet comes before `seq`.
    uint32_t Before(uint32_t seq) const {
      const auto first = std::lower_bound(m_last.begin(), m_last.end(), seq);
      return m_forgotten + static_cast<uint32_t>(first - m_last.begin());
    }

   private:
    friend class MessageEnds;
    void End(uint32_t seq) {
      if (!m_last.empty() && m_last.back() >= seq) return;  // repeated: says nothing new
      if (m_last.size() == kMostEnds) {
        m_last.erase(m_last.begin(), m_last.begin() + kMostEnds / 2);
        m_forgotten += kMostEnds / 2;
      }
      m_last.push_back(seq);
    }

    uint32_t m_ref = 0;
    uint32_t m_forgotten = 0;      // messages too old for any frame that is still on its way
    std::vector<uint32_t> m_last;  // last packets of the other messages, ascending
  };

  /// Tells of a data packet that a NIC sends.
  void Sent(const ::dcqcn::Packet& p, uint32_t source) {
    if (p.seq != 0 && !p.last) return;
    const uint32_t slot = ::dcqcn::slot_of(p.qp);
    if (slot >= m_slots.size()) m_slots.resize(slot + 1);
    std::vector<Pair>& pairs = m_slots[slot];
    if (pairs.empty() || pairs.back().m_ref != p.qp) {
      if (pairs.size() == kMostPairs) pairs.erase(pairs.begin());
      pairs.emplace_back();
      pairs.back().m_ref = p.qp;
      pairs.back().src = source;
      pairs.back().dst = p.dst;
    }
    if (p.last) pairs.back().End(p.seq);
  }
  const Pair& Of(uint32_t ref) const {
    static const Pair none;
    const uint32_t slot = ::dcqcn::slot_of(ref);
    if (slot >= m_slots.size()) return none;
    const std::vector<Pair>& pairs = m_slots[slot];
    const auto at = std::find_if(pairs.rbegin(), pairs.rend(),
                                 [ref](const Pair& pair) { return pair.m_ref == ref; });
    return at != pairs.rend() ? *at : none;
  }

 private:
  // far more than can be sent while one frame is on its way
  static constexpr std::size_t kMostPairs = 16, kMostEnds = 1 << 16;

  std::vector<std::vector<Pair>> m_slots;
};

}  // namespace ns3
#endif
