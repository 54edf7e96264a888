// RED marking at dequeue, by the instantaneous queue that the packet leaves behind.
#pragma once

#include "model/random_stream.hpp"
#include "model/settings.hpp"

namespace dcqcn {

// `left` is the bytes of the same port and priority after the departing packet was removed;
// a random number is drawn only between kmin and kmax
inline bool ecn_marks(const EcnSetting& s, Bytes left, RandomStream& draws) {
  if (left <= s.kmin) return false;
  if (left > s.kmax) return true;
  return draws.uniform() < s.slope * static_cast<double>(left - s.kmin);
}

}  // namespace dcqcn
