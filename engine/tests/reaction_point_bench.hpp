// A queue pair for tables worked out by hand: times in us, rates in Gb/s, alpha of 1024.
#pragma once

#include <functional>
#include <memory>

#include "model/schemes/dcqcn.hpp"
#include "tests/plain_setting.hpp"

namespace dcqcn {

// Alpha stays at 512 (its period is never reached), so a cut is R := R * (1 - 512/2048) = 3/4 R.
inline NicSetting plain() {
  NicSetting s = plain_increases();
  s.reduce_period = us(10);
  s.alpha_period = us(100'000);
  s.initial_alpha = 512;
  return s;
}

// a 100 Gb/s queue pair whose clock the test moves
struct Bench {
  NicSetting s;
  RpMode mode;
  ReactionPoint rp;

  explicit Bench(const NicSetting& setting, RpMode m = RpMode::kNic) : s(setting), mode(m) {
    rp.start(gbps(100));
  }
  void cnp(double t) { rp.on_cnp(s, mode, us(t)); }
  void sent(double t, int packets) {
    for (int i = 0; i < packets; ++i) {
      rp.catch_up(s, us(t));
      rp.on_sent(s, 1000);
    }
  }
  Rate rate(double t) {
    rp.catch_up(s, us(t));
    return rp.rate;
  }
  Rate target(double t) {
    rp.catch_up(s, us(t));
    return rp.target;
  }
  double alpha(double t) {  // a CNP brings alpha up to date
    cnp(t);
    return rp.alpha(s);
  }
  void change(double t, const NicSetting& next) {
    rp.change_setting(s, next, us(t));
    s = next;
  }
};

inline NicSetting with(const std::function<void(NicSetting&)>& change) {
  NicSetting s = plain();
  change(s);
  return s;
}
inline NicSetting with_g(NicSetting s, double g) {
  s.g = g;
  s.decay = std::make_shared<DecayTable>(g / 1024.0);
  return s;
}

}  // namespace dcqcn
