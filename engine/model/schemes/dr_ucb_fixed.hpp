// DR-UCB as a NIC keeps it (Dolce-RC, section IV-B): 4 bytes an arm, 20 bytes a connection, whole
// numbers only. The paper gives the sizes and no layout; this one is ours
// (docs/reference/decisions.md):
//
// - An arm is its discounted plays and rewards as 16-bit numbers with `fraction` bits after the
//   point, as many as the largest sum that gamma allows leaves.
// - Both are discounted once in `batch` iterations, at most 6.4 % at a time: per iteration it
//   would be less than the last bit.
// - What falls below the last bit is rounded up or down at random, in proportion, from a hash of
//   the state: sums stay right on average, and the same state gives the same bits.
//
// Against the floating version on the same rewards: discounted plays within 8 %, means within
// 0.06, and on the bandits of dr_ucb_test.cpp regret/T within 0.002 (all tested there).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "model/base/random_stream.hpp"
#include "model/schemes/dr_ucb.hpp"

namespace dcqcn {

namespace fixed {

/// log2 of x > 0 with 16 bits after the point, rounded down (Turner 2010: repeated squaring).
constexpr std::uint32_t log2_q16(std::uint32_t x) {
  const std::uint32_t whole = static_cast<std::uint32_t>(std::bit_width(x)) - 1;
  std::uint64_t m = static_cast<std::uint64_t>(x) << (31 - whole);  // 1..2 with 31 bits
  std::uint32_t result = whole;
  for (int i = 0; i < 16; ++i) {
    m = m * m >> 31;
    const std::uint32_t bit = m >= (1ull << 32);
    m >>= bit;
    result = result << 1 | bit;
  }
  return result;
}

/// The square root, rounded down.
constexpr std::uint32_t sqrt_of(std::uint64_t x) {
  std::uint64_t root = 0;
  for (std::uint64_t bit = 1ull << 31; bit > 0; bit >>= 1) {
    if ((root | bit) * (root | bit) <= x) root |= bit;
  }
  return static_cast<std::uint32_t>(root);
}

}  // namespace fixed

// what a NIC computes once from UcbRules
struct FixedUcbRules {
  std::uint32_t arms = 4;
  std::uint32_t period = 266;
  std::uint32_t batch = 256;     // iterations between two discounts
  std::uint32_t discount = 0;    // gamma^batch, of 65536
  std::uint32_t fraction = 3;    // bits after the point
  std::uint32_t xi_ln2 = 22718;  // xi ln 2, of 65536

  explicit FixedUcbRules(const UcbRules& rules)
      : arms(static_cast<std::uint32_t>(rules.arms)),
        period(std::min<std::uint32_t>(rules.period(), (1u << 14) - 1)) {
    const double forgets = std::max(1.0 - rules.gamma, 1e-9);
    batch = std::bit_floor(static_cast<std::uint32_t>(std::clamp(0.064 / forgets, 1.0, 256.0)));
    double power = 1.0;
    for (std::uint32_t i = 0; i < batch; ++i) power *= rules.gamma;
    discount = static_cast<std::uint32_t>(power * 65536.0 + 0.5);
    const double most = batch / std::max(1.0 - power, 1e-9) + 1.0;  // plays, discounted
    fraction = 0;
    while (fraction < 8 && most * static_cast<double>(2u << fraction) <= 65535.0) ++fraction;
    xi_ln2 = static_cast<std::uint32_t>(rules.xi * 0.69314718055994531 * 65536.0 + 0.5);
  }
};

class FixedDrUcb {
 public:
  static constexpr int kArms = 4;

  int choose(const FixedUcbRules& rules) const {
    const std::uint32_t turn = turn_ % rules.period;
    if (turn < rules.arms) return static_cast<int>(turn);
    std::uint32_t total = 0;
    for (std::uint32_t i = 0; i < rules.arms; ++i) total += arms_[i].tried;
    int best = 0;
    std::uint32_t highest = 0;
    for (std::uint32_t i = 0; i < rules.arms; ++i) {
      if (arms_[i].tried == 0) return static_cast<int>(i);
      const std::uint32_t at = index(rules, static_cast<int>(i), total);
      if (i == 0 || at > highest) best = static_cast<int>(i), highest = at;
    }
    return best;
  }

  void advance(const FixedUcbRules& rules) {
    turn_ = static_cast<std::uint16_t>((turn_ + 1u) % rules.period);
  }

  /// `marked` is the ECN ratio, of 255: the reward is 1 - marked/255.
  void learn(const FixedUcbRules& rules, int arm, std::uint8_t marked) {
    ratio_ = marked;
    ++age_;
    if (age_ >= rules.batch || age_ == 0) {
      age_ = 0;
      for (std::uint32_t i = 0; i < rules.arms; ++i) discount(rules, i);
    }
    Arm& played = arms_[arm];
    const std::uint32_t most = 65535;
    const std::uint32_t sum = (static_cast<std::uint32_t>(played.tried) + (1u << rules.fraction));
    const std::uint32_t reward = (255u - marked) << rules.fraction;
    const std::uint32_t gained = reward / 255 + (reward % 255 * 257 > dither(8));
    played.tried = static_cast<std::uint16_t>(std::min(sum, most));
    played.reward =
        static_cast<std::uint16_t>(std::min<std::uint32_t>(played.reward + gained, played.tried));
  }

  /// Mean reward and index of an arm that was played, of 65536.
  std::uint32_t mean(int arm) const {
    return (static_cast<std::uint32_t>(arms_[arm].reward) << 16) / arms_[arm].tried;
  }
  std::uint32_t index(const FixedUcbRules& rules, int arm, std::uint32_t total) const {
    const std::uint32_t log2 = fixed::log2_q16(std::max(total, 1u));
    const std::uint32_t point = rules.fraction << 16;
    const std::uint64_t width =
        static_cast<std::uint64_t>(log2 > point ? log2 - point : 0) * rules.xi_ln2 >> 16;
    return mean(arm) + fixed::sqrt_of((width << (16 + rules.fraction)) / arms_[arm].tried);
  }
  double tried(const FixedUcbRules& rules, int arm) const {
    return static_cast<double>(arms_[arm].tried) / static_cast<double>(1u << rules.fraction);
  }

 private:
  struct Arm {
    std::uint16_t reward = 0;
    std::uint16_t tried = 0;
  };

  // 0..65535, from the state
  std::uint32_t dither(std::uint32_t what) const {
    const std::uint32_t sums =
        static_cast<std::uint32_t>(arms_[what & 3].reward) << 16 | arms_[what & 3].tried;
    const std::uint32_t when =
        static_cast<std::uint32_t>(turn_) << 16 | static_cast<std::uint32_t>(age_) << 8 | ratio_;
    return mix32(mix32(sums + what * 0x9E3779B9u) ^ when) >> 16;
  }
  void discount(const FixedUcbRules& rules, std::uint32_t i) {
    Arm& a = arms_[i];
    const auto part = [&](std::uint32_t value, std::uint32_t what) {
      return static_cast<std::uint16_t>((value * rules.discount + dither(what)) >> 16);
    };
    a.reward = part(a.reward, i);
    a.tried = part(a.tried, i + 4);
    a.reward = std::min(a.reward, a.tried);
  }

  std::array<Arm, kArms> arms_{};
  std::uint16_t turn_ = 0;  // t mod floor(K/epsilon)
  std::uint8_t age_ = 0;    // iterations since the last discount
  std::uint8_t ratio_ = 0;  // the last ECN ratio, of 255
};
static_assert(sizeof(FixedDrUcb) == 20);

}  // namespace dcqcn
