// Units and numbers of tables that can be checked on paper.
#pragma once

#include "model/base/units.hpp"
#include "model/settings/settings.hpp"

namespace dcqcn {

constexpr Time us(double t) { return static_cast<Time>(t * 1e6 + (t < 0 ? -0.5 : 0.5)); }
constexpr Rate gbps(double r) { return static_cast<Rate>(r * 1e9 + 0.5); }

// a reaction point's increases, by its timer alone: one of fast recovery, then steps of 1 Gb/s
template <class Setting = NicSetting>
Setting plain_increases() {
  Setting s;
  s.time_reset = us(100);
  s.byte_reset = 0;
  s.threshold = 1;
  s.ai_rate = gbps(1);
  s.hai_rate = gbps(4);
  s.min_rate = gbps(1);
  return s;
}

}  // namespace dcqcn
