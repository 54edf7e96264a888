// RED marking at dequeue, by the instantaneous queue that the packet leaves behind.
#pragma once

#include "model/base/metrics.hpp"
#include "model/base/random_stream.hpp"
#include "model/fabric/packet.hpp"
#include "model/settings/settings.hpp"

namespace dcqcn {

// `left` is the bytes of the same port and priority after the departing packet was removed;
// a random number is drawn only between kmin and kmax
inline bool ecn_marks(const EcnSetting& s, Bytes left, RandomStream& draws) {
  if (left <= s.kmin) return false;
  if (left > s.kmax) return true;
  return draws.uniform() < s.slope * static_cast<double>(left - s.kmin);
}

// What a switch does about congestion as `p` leaves the queue of `port` and leaves `left` bytes
// there: true if it was marked by `ecn`. For every port that has `draws` and `counters`.
template <typename Port>
inline bool mark_departing(Port& port, const EcnSetting& ecn, Packet& p, Bytes left,
                           Totals& totals) {
  if (!ecn_marks(ecn, left, port.draws)) return false;
  p.ecn = 1;
  ++port.counters.marked_packets;
  port.counters.marked_bytes += p.bytes;
  ++totals.marks;
  return true;
}

}  // namespace dcqcn
