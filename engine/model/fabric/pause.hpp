// Which priorities of an egress port are paused, and for how long they have been.
#pragma once

#include "model/base/units.hpp"

namespace dcqcn {

// a PFC frame as ports keep it: `arrival` is when it takes effect at the far end
struct PfcFrame {
  Time arrival = 0;
  std::uint8_t priority = 0;
  bool pause = false;
};

class PauseClock {
 public:
  bool any() const { return paused_ != 0; }
  bool paused(unsigned priority) const { return paused_ >> priority & 1; }
  std::uint8_t bits() const { return paused_; }

  // a frame takes effect; false if it changes nothing (a pause of what is paused already)
  bool take(unsigned priority, bool pause, Time now) {
    if (paused(priority) == pause) return false;
    paused_ ^= static_cast<std::uint8_t>(1u << priority);
    if (pause) {
      since_[priority] = now;
    } else {
      sum_[priority] += now - since_[priority];
    }
    return true;
  }

  // summed over priorities, since the interval began
  Time so_far(Time now) const {
    Time total = 0;
    for (unsigned p = 0; p < 8; ++p) total += sum_[p] + (paused(p) ? now - since_[p] : 0);
    return total;
  }
  void begin_interval(Time now) {
    for (unsigned p = 0; p < 8; ++p) {
      sum_[p] = 0;
      if (paused(p)) since_[p] = now;
    }
  }

 private:
  std::uint8_t paused_ = 0;  // bit per priority
  Time since_[8] = {};
  Time sum_[8] = {};
};

}  // namespace dcqcn
