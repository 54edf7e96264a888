// The smallest possible check: print what failed, count it, and let main() return the count.
#pragma once

#include <cstdio>

namespace dcqcn::check {

inline int failures = 0;
inline int checks = 0;

inline bool that(bool ok, const char* what, const char* file, int line) {
  ++checks;
  if (!ok) {
    ++failures;
    if (failures <= 50) std::printf("%s:%d: failed: %s\n", file, line, what);
  }
  return ok;
}

inline void between(double value, double low, double high, const char* what, const char* file,
                    int line) {
  if (!that(value >= low && value <= high, what, file, line))
    std::printf("    value %.17g, expected %.17g .. %.17g\n", value, low, high);
}

inline void equal(double value, double expected, const char* what, const char* file, int line) {
  if (!that(value == expected, what, file, line))
    std::printf("    value %.17g, expected %.17g\n", value, expected);
}

inline int result(const char* name) {
  std::printf("%s: %d checks, %d failed\n", name, checks, failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace dcqcn::check

#define CHECK(cond) ::dcqcn::check::that((cond), #cond, __FILE__, __LINE__)
#define CHECK_BETWEEN(value, low, high) \
  ::dcqcn::check::between((value), (low), (high), #value, __FILE__, __LINE__)
#define CHECK_EQ(value, expected)                                                          \
  ::dcqcn::check::equal(static_cast<double>(value), static_cast<double>(expected), #value, \
                        __FILE__, __LINE__)
