// Draws for random jobs: the same on every machine.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "model/base/det_math.hpp"
#include "model/base/random_stream.hpp"

namespace dcqcn::fuzz {

class Dice {
 public:
  Dice(std::uint64_t seed, std::uint64_t number) : draws_(seed, Purpose::kRounds, number) {}
  bool one_in(std::uint32_t n) { return draws_.below(n) == 0; }
  std::int64_t whole(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(draws_.next() >> 1) % (high - low + 1);
  }
  double real(double low, double high) { return low + (high - low) * draws_.uniform(); }
  double log_real(double low, double high) { return det_exp(real(det_log(low), det_log(high))); }
  std::int64_t log_whole(double low, double high) {
    return static_cast<std::int64_t>(log_real(low, high));
  }
  template <class T>
  T pick(std::initializer_list<T> items) {
    return *(items.begin() + draws_.below(static_cast<std::uint32_t>(items.size())));
  }

 private:
  RandomStream draws_;
};

}  // namespace dcqcn::fuzz
