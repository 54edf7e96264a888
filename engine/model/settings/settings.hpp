// The knobs in engine units, and what is derived from them once per change. Defaults, units and
// ranges are those of the rows: schemes/dcqcn_knobs.hpp and ecn_knobs.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "model/base/units.hpp"

namespace dcqcn {

// (G/1024)^n as a product of two tabulated powers. This product *is* the definition of the decay
// of alpha over n idle periods, so that a lazy and an eager engine agree to the bit.
class DecayTable {
 public:
  explicit DecayTable(double factor) {
    low_[0] = high_[0] = 1.0;
    for (std::size_t i = 1; i < low_.size(); ++i) low_[i] = low_[i - 1] * factor;
    const double step = low_.back() * factor;
    for (std::size_t i = 1; i < high_.size(); ++i) high_[i] = high_[i - 1] * step;
  }
  double power(std::uint32_t n) const { return n < 65536 ? high_[n >> 8] * low_[n & 255] : 0.0; }

 private:
  std::array<double, 256> low_{};
  std::array<double, 256> high_{};
};

struct NicSetting {
  bool clamp_target, clamp_target_after_time;
  Time time_reset;
  Bytes byte_reset;         // 0: the byte stage follows the timer stage
  std::uint32_t threshold;  // F
  Rate max_rate;            // 0: line rate
  Rate ai_rate, hai_rate;
  double gd;  // 2^gd
  double min_dec_fac;
  Rate min_rate;
  Rate first_cnp_rate;  // 0: no change
  Time reduce_period;
  double g;  // of 1024
  Time alpha_period;
  double initial_alpha;  // of 1024
  Time cnp_gap;
  std::shared_ptr<const DecayTable> decay;  // of g

  NicSetting();  // the rows' defaults
  // from SI values in the order of the rows
  static NicSetting from_si(const double* v);
};

struct EcnSetting {
  Bytes kmin, kmax;
  double pmax;
  double slope;          // pmax / (kmax - kmin)
  double pfc_alpha = 0;  // 0: that of the scenario

  EcnSetting();
  static EcnSetting from_si(const double* v);
  // the same with the columns of pfc_knobs.hpp behind
  static EcnSetting with_pfc(const double* v);
};

}  // namespace dcqcn
