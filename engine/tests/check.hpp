// The smallest possible check: print what failed, count it, and let main() return the count.
#pragma once

#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>

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

// integers as integers: as doubles, times near kNever would all be the same
template <class A, class B>
void equal(const A& value, const B& expected, const char* what, const char* file, int line) {
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B>) {
    const auto a = static_cast<__int128>(value), b = static_cast<__int128>(expected);
    if (that(a == b, what, file, line)) return;
    std::printf("    value %s, expected %s\n", std::to_string(value).c_str(),
                std::to_string(expected).c_str());
  } else {
    const double a = static_cast<double>(value), b = static_cast<double>(expected);
    if (!that(a == b, what, file, line)) std::printf("    value %.17g, expected %.17g\n", a, b);
  }
}

// `call` throws std::invalid_argument, with these words in its message
template <class Call>
void refuses(Call&& call, const std::string& words, const char* what, const char* file, int line) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    const std::string said = error.what();
    if (that(said.find(words) != std::string::npos, what, file, line)) return;
    std::printf("    said '%s', expected '%s'\n", said.c_str(), words.c_str());
    return;
  }
  that(false, what, file, line);
}

// `--tables`: only the tables of ten steps and more, whose branches tools/branches.py counts
inline bool tables_only(int argc, char** argv) {
  return argc == 2 && std::strcmp(argv[1], "--tables") == 0;
}

inline int result(const char* name) {
  std::printf("%s: %d checks, %d failed\n", name, checks, failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace dcqcn::check

#define CHECK(cond) ::dcqcn::check::that((cond), #cond, __FILE__, __LINE__)
#define CHECK_BETWEEN(value, low, high) \
  ::dcqcn::check::between((value), (low), (high), #value, __FILE__, __LINE__)
#define CHECK_EQ(value, expected) \
  ::dcqcn::check::equal((value), (expected), #value, __FILE__, __LINE__)
// the expression is refused
#define CHECK_REFUSED(expression, words) \
  ::dcqcn::check::refuses([&] { (void)(expression); }, (words), #expression, __FILE__, __LINE__)
