// Logarithm and exponential from the four basic operations alone: the same bits on every x86-64
// machine and C library. Needs -ffp-contract=off, as the whole engine does.
#pragma once

#include <bit>
#include <cstdint>

namespace dcqcn {

namespace det_detail {
// ln 2 in two parts: the upper has 21 trailing zero bits, so exponent * kLn2Hi is exact
inline constexpr double kLn2Hi = 6.93147180369123816490e-01;
inline constexpr double kLn2Lo = 1.90821492927058770002e-10;
}  // namespace det_detail

/// Natural logarithm of a finite x > 0, relative error below 1e-15 (subnormal x included).
/// ln(m * 2^e) = e ln 2 + 2 artanh(s), s = (m-1)/(m+1), with m in [sqrt(1/2), sqrt(2)).
constexpr double det_log(double x) {
  int exponent = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    exponent = -54;
  }
  std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  // moving the window down to sqrt(1/2) keeps e ln 2 and the series from cancelling
  constexpr std::uint64_t kSqrtHalf = 0x3fe6a09e667f3bcdULL;
  const std::int64_t shift = static_cast<std::int64_t>(bits - kSqrtHalf) >> 52;
  exponent += static_cast<int>(shift);
  bits -= static_cast<std::uint64_t>(shift) << 52;
  const double f = std::bit_cast<double>(bits) - 1.0;  // exact
  const double s = f / (2.0 + f);
  const double z = s * s;  // at most 0.0295: twelve terms leave less than 1e-18
  double p = 1.0 / 23.0;
  p = p * z + 1.0 / 21.0;
  p = p * z + 1.0 / 19.0;
  p = p * z + 1.0 / 17.0;
  p = p * z + 1.0 / 15.0;
  p = p * z + 1.0 / 13.0;
  p = p * z + 1.0 / 11.0;
  p = p * z + 1.0 / 9.0;
  p = p * z + 1.0 / 7.0;
  p = p * z + 1.0 / 5.0;
  p = p * z + 1.0 / 3.0;
  const double series = 2.0 * s + 2.0 * s * (z * p);
  const double e = static_cast<double>(exponent);
  return e * det_detail::kLn2Hi + (series + e * det_detail::kLn2Lo);
}

/// e to the x, relative error below 1e-15; 0 below -700 and the value at 700 above it.
constexpr double det_exp(double x) {
  if (x < -700.0) return 0.0;
  if (x > 700.0) x = 700.0;
  constexpr double kInvLn2 = 1.44269504088896338700;
  const double scaled = x * kInvLn2;
  const int n = static_cast<int>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
  const double k = static_cast<double>(n);
  const double r = (x - k * det_detail::kLn2Hi) - k * det_detail::kLn2Lo;
  double p = 1.0;  // Taylor from the inside out; |r| < 0.35, so 15 terms leave less than 1e-18
  for (int i = 15; i >= 1; --i) p = 1.0 + p * r / static_cast<double>(i);
  return p * std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52);
}

}  // namespace dcqcn
