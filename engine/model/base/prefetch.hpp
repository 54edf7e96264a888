// Fetching ahead of use: a hint that changes no result.
#pragma once

#include <cstddef>

namespace dcqcn {

inline constexpr std::size_t kCacheLine = 64;

// every line of a value that is about to be changed
template <class T>
inline void prefetch_all(const T& value) {
  const char* const at = reinterpret_cast<const char*>(&value);
  for (std::size_t i = 0; i < sizeof(T); i += kCacheLine) __builtin_prefetch(at + i, 1);
}

}  // namespace dcqcn
