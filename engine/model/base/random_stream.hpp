// Counter-based random streams: the n-th draw of a stream is a pure function of (seed, purpose,
// id, n), so the order in which other streams are used can never change it.
#pragma once

#include <cstdint>

namespace dcqcn {

// splitmix64's finaliser (Steele, Lea, Flood 2014): a bijection with good avalanche
constexpr std::uint64_t mix64(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// murmur3's 32-bit finaliser
constexpr std::uint32_t mix32(std::uint32_t x) {
  x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
  x = (x ^ (x >> 13)) * 0xC2B2AE35u;
  return x ^ (x >> 16);
}

enum class Purpose : std::uint8_t { kMarking = 1, kArrivals = 2, kRounds = 3, kMonitor = 4 };

class RandomStream {
 public:
  RandomStream() = default;
  RandomStream(std::uint64_t seed, Purpose purpose, std::uint64_t id)
      : key_(mix64(mix64(mix64(seed + kGolden) + static_cast<std::uint64_t>(purpose) * kGolden) +
                   id * kGolden)) {}

  std::uint64_t next() { return mix64(key_ + kGolden * ++counter_); }
  // uniform in [0, 1) with 53 bits
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  // uniform in {0, ..., n-1}; the bias of 2^-32 is far below anything measurable
  std::uint32_t below(std::uint32_t n) {
    return static_cast<std::uint32_t>(((next() >> 32) * n) >> 32);
  }

 private:
  static constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15ull;
  std::uint64_t key_ = 0;
  std::uint64_t counter_ = 0;
};

}  // namespace dcqcn
