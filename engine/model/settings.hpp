// The knobs in engine units, and what is derived from them once per change.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>

#include "model/units.hpp"

namespace dcqcn {

// order of the columns that Python hands over; equal to NIC_KNOBS and ECN_KNOBS of knobs.py
inline constexpr std::array<const char*, 17> kNicKnobs = {"rp_clamp_tgt_rate",
                                                          "rp_clamp_tgt_rate_ati",
                                                          "rp_time_reset",
                                                          "rp_byte_reset",
                                                          "rp_threshold",
                                                          "rp_max_rate",
                                                          "rp_ai_rate",
                                                          "rp_hai_rate",
                                                          "rp_gd",
                                                          "rp_min_dec_fac",
                                                          "rp_min_rate",
                                                          "rp_rate_to_set_on_first_cnp",
                                                          "rp_rate_reduce_monitor_period",
                                                          "rp_dce_tcp_g",
                                                          "rp_dce_tcp_rtt",
                                                          "rp_initial_alpha_value",
                                                          "np_min_time_between_cnps"};
inline constexpr std::array<const char*, 3> kEcnKnobs = {"kmin", "kmax", "pmax"};

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
  bool clamp_target = false;
  bool clamp_target_after_time = true;
  Time time_reset = 300 * kPicosPerMicro;
  Bytes byte_reset = 32767 * 64;  // 0: the byte stage follows the timer stage
  std::uint32_t threshold = 1;    // F
  Rate max_rate = 0;              // 0: line rate
  Rate ai_rate = 5'000'000;
  Rate hai_rate = 50'000'000;
  double gd = 2048.0;  // 2^gd
  double min_dec_fac = 0.5;
  Rate min_rate = 1'000'000;
  Rate first_cnp_rate = 0;  // 0: no change
  Time reduce_period = 4 * kPicosPerMicro;
  double g = 1019.0;  // of 1024
  Time alpha_period = kPicosPerMicro;
  double initial_alpha = 1023.0;  // of 1024
  Time cnp_gap = 4 * kPicosPerMicro;
  std::shared_ptr<const DecayTable> decay = std::make_shared<DecayTable>(1019.0 / 1024.0);

  // from SI values in the order of kNicKnobs
  static NicSetting from_si(const double* v);
};

struct EcnSetting {
  Bytes kmin = 400'000;
  Bytes kmax = 1'600'000;
  double pmax = 0.2;
  double slope = 0.2 / 1'200'000.0;  // pmax / (kmax - kmin)

  static EcnSetting from_si(const double* v) {
    EcnSetting e;
    e.kmin = static_cast<Bytes>(v[0] + 0.5);
    e.kmax = static_cast<Bytes>(v[1] + 0.5);
    e.pmax = v[2];
    if (e.kmin < 0 || e.kmax < e.kmin || !(v[2] >= 0.0 && v[2] <= 1.0)) {
      throw std::invalid_argument("ECN setting: expected 0 <= kmin <= kmax and 0 <= pmax <= 1");
    }
    e.slope = e.kmax > e.kmin ? e.pmax / static_cast<double>(e.kmax - e.kmin) : 0.0;
    return e;
  }
};

inline NicSetting NicSetting::from_si(const double* v) {
  for (std::size_t i = 0; i < kNicKnobs.size(); ++i) {
    if (!(v[i] >= 0.0 && v[i] < 4e18)) {
      throw std::invalid_argument(std::string("NIC setting: ") + kNicKnobs[i] +
                                  " must be a number at or above 0");
    }
  }
  const auto whole = [](double x) { return static_cast<std::int64_t>(x + 0.5); };
  const auto picos = [&](double s) { return whole(s * 1e12); };
  NicSetting s;
  s.clamp_target = v[0] != 0.0;
  s.clamp_target_after_time = v[1] != 0.0;
  s.time_reset = picos(v[2]);
  s.byte_reset = whole(v[3]);
  s.threshold = static_cast<std::uint32_t>(whole(v[4]));
  s.max_rate = whole(v[5]);
  s.ai_rate = whole(v[6]);
  s.hai_rate = whole(v[7]);
  s.gd = static_cast<double>(std::uint64_t{1} << (whole(v[8]) & 31));
  s.min_dec_fac = v[9];
  s.min_rate = whole(v[10]);
  s.first_cnp_rate = whole(v[11]);
  s.reduce_period = picos(v[12]);
  s.g = static_cast<double>(whole(v[13] * 1024.0));
  s.alpha_period = picos(v[14]);
  s.initial_alpha = static_cast<double>(whole(v[15] * 1024.0));
  s.cnp_gap = picos(v[16]);
  if (s.time_reset < 1 || s.reduce_period < 1 || s.alpha_period < 1 || s.min_rate < 1) {
    throw std::invalid_argument("NIC setting: timers and rp_min_rate must be above 0");
  }
  s.decay = std::make_shared<DecayTable>(s.g / 1024.0);
  return s;
}

}  // namespace dcqcn
