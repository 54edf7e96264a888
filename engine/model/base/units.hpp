// Named integer units. Time is picoseconds, sizes are bytes, rates are bits per second.
#pragma once

#include <cstdint>
#include <limits>

namespace dcqcn {

using Time = std::int64_t;   // picoseconds
using Bytes = std::int64_t;  // bytes
using Rate = std::int64_t;   // bits per second

inline constexpr Time kNever = std::numeric_limits<Time>::max();
inline constexpr Time kPicosPerSecond = 1'000'000'000'000;
inline constexpr Time kPicosPerMicro = 1'000'000;

// serialisation time of one byte at a rate that divides exactly
constexpr Time ps_per_byte(Rate rate) { return 8 * kPicosPerSecond / rate; }
// rounded up, so that pacing at line rate is never slower than the wire
constexpr Rate rate_of(Time ps_per_byte) {
  return (8 * kPicosPerSecond + ps_per_byte - 1) / ps_per_byte;
}

// the pacing gap of `bytes` at `rate`, rounded up to a whole picosecond
constexpr Time pacing_gap(Bytes bytes, Rate rate) {
  return (bytes * 8 * kPicosPerSecond + rate - 1) / rate;
}

}  // namespace dcqcn
