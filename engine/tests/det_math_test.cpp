#include "model/base/det_math.hpp"

#include <cmath>
#include <cstdint>
#include <limits>

#include "check.hpp"

namespace {

double worst_log(double from, double to, int steps) {
  double worst = 0.0;
  for (int i = 0; i <= steps; ++i) {
    const double x = from + (to - from) * i / steps;
    const long double truth = std::log(static_cast<long double>(x));
    const long double error = static_cast<long double>(dcqcn::det_log(x)) - truth;
    if (truth != 0) worst = std::fmax(worst, static_cast<double>(std::fabs(error / truth)));
  }
  return worst;
}

void log_is_accurate() {
  CHECK_BETWEEN(worst_log(1e-12, 1.0, 200000), 0.0, 1e-15);
  CHECK_BETWEEN(worst_log(0.999, 1.001, 200000), 0.0, 1e-15);
  CHECK_BETWEEN(worst_log(0.5, 2.0, 200000), 0.0, 1e-15);
  CHECK_BETWEEN(worst_log(1.0, 1e9, 200000), 0.0, 1e-15);
  double worst = 0.0;
  for (double x = std::numeric_limits<double>::denorm_min(); x < 1e308;
       x *= (x < 1e-307 ? 2.0 : 1.37)) {
    const long double truth = std::log(static_cast<long double>(x));
    const long double error = (dcqcn::det_log(x) - truth) / truth;
    worst = std::fmax(worst, static_cast<double>(std::fabs(error)));
  }
  CHECK_BETWEEN(worst, 0.0, 1e-15);
  CHECK_EQ(dcqcn::det_log(1.0), 0.0);
  CHECK_BETWEEN(dcqcn::det_log(0x1p-53), -36.7368005696771, -36.7368005696770);
}

void exp_is_accurate() {
  double worst = 0.0;
  for (int i = -690000; i <= 690000; i += 7) {
    const double x = i * 1e-3;
    const long double truth = std::exp(static_cast<long double>(x));
    const long double error = (dcqcn::det_exp(x) - truth) / truth;
    worst = std::fmax(worst, static_cast<double>(std::fabs(error)));
  }
  CHECK_BETWEEN(worst, 0.0, 1e-15);
  CHECK_EQ(dcqcn::det_exp(0.0), 1.0);
  CHECK_EQ(dcqcn::det_exp(-1000.0), 0.0);
}

// a digest of many results, so that a compiler or flag that changes one bit is seen
void bits_are_fixed() {
  std::uint64_t state = 1, digest = 0;
  for (int i = 0; i < 100000; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const double x = static_cast<double>((state >> 11) + 1) * 0x1p-53;
    digest = digest * 31 + std::bit_cast<std::uint64_t>(dcqcn::det_log(x));
    digest = digest * 31 + std::bit_cast<std::uint64_t>(dcqcn::det_exp(100.0 * x - 50.0));
  }
  if (!CHECK(digest == 0xed5c62edeccb09bfULL))
    std::printf("    digest 0x%016llx\n", static_cast<unsigned long long>(digest));
  static_assert(dcqcn::det_log(1.0) == 0.0);
}

}  // namespace

int main() {
  log_is_accurate();
  exp_is_accurate();
  bits_are_fixed();
  return dcqcn::check::result("det_math");
}
