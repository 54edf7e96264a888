// DR-UCB, the learner of Dolce-RC (Ye et al., algorithm 1): discounted UCB (Garivier and Moulines
// 2011) that plays every arm once in each floor(K/epsilon) iterations. Rewards lie in 0..1. The
// logarithm is det_log and the square root is IEEE's, so every machine chooses the same arms.
// dr_ucb_fixed.hpp is the same learner in the 20 bytes and the integers of a NIC.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "model/base/det_math.hpp"

namespace dcqcn {

struct UcbRules {
  int arms = 4;                   // K, 1 to DrUcb::kMost
  double gamma = 0.9998;          // discount of an iteration
  double epsilon = 0.015;         // share of the iterations in which arms take turns
  double xi = 0.5001;             // weight of the exploration bonus
  std::uint32_t period() const {  // iterations from one round of turns to the next
    return std::max<std::uint32_t>(1, static_cast<std::uint32_t>(arms / epsilon));
  }
};

class DrUcb {
 public:
  static constexpr int kMost = 8;

  /// The arm to play in this iteration (lines 3 to 8): that whose turn it is, else the one with
  /// the highest index; of equals the first. An arm that was never played comes first.
  int choose(const UcbRules& rules) const {
    if (turning(rules)) return static_cast<int>(turn_ % rules.period());
    double total = 0;
    for (int i = 0; i < rules.arms; ++i) total += tried_[i];
    // below one play in all, discounted, the logarithm would be negative
    const double width = rules.xi * std::max(det_log(std::max(total, 1e-300)), 0.0);
    int best = 0;
    double highest = -1;
    for (int i = 0; i < rules.arms; ++i) {
      if (tried_[i] == 0.0) return i;
      const double index = mean(i) + std::sqrt(width / tried_[i]);
      if (index > highest) best = i, highest = index;
    }
    return best;
  }

  /// The next iteration begins.
  void advance(const UcbRules& rules) { turn_ = (turn_ + 1) % rules.period(); }

  /// `arm` was played and gave `reward` (lines 9 and 10).
  void learn(const UcbRules& rules, int arm, double reward) {
    for (int i = 0; i < kMost; ++i) {
      reward_[i] *= rules.gamma;
      tried_[i] *= rules.gamma;
    }
    reward_[arm] += reward;
    tried_[arm] += 1.0;
  }

  // has every arm given a reward?
  bool ready(const UcbRules& rules) const {
    return std::find(tried_.begin(), tried_.begin() + rules.arms, 0.0) ==
           tried_.begin() + rules.arms;
  }
  // is the arm of this iteration one whose turn it is?
  bool turning(const UcbRules& rules) const {
    return turn_ % rules.period() < static_cast<std::uint32_t>(rules.arms);
  }
  double tried(int arm) const { return tried_[arm]; }  // n_i, discounted
  double mean(int arm) const { return reward_[arm] / tried_[arm]; }

 private:
  std::array<double, kMost> reward_{};  // discounted sums
  std::array<double, kMost> tried_{};
  std::uint32_t turn_ = 0;  // t mod floor(K/epsilon)
};

}  // namespace dcqcn
