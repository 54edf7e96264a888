// The marking curve: kmin, kmax and pmax, by the bytes that a departing packet leaves behind.
#include "model/fabric/ecn.hpp"

#include <cmath>
#include <stdexcept>
#include <tuple>

#include "tests/check.hpp"

namespace dcqcn {
namespace {

EcnSetting curve(double kmin, double kmax, double pmax) {
  const double si[3] = {kmin, kmax, pmax};
  return EcnSetting::from_si(si);
}

double share(const EcnSetting& s, Bytes left, int n = 20'000) {
  RandomStream draws(7, Purpose::kMarking, 3);
  int marked = 0;
  for (int i = 0; i < n; ++i) marked += ecn_marks(s, left, draws);
  return static_cast<double>(marked) / n;
}

// five standard deviations of a share of n = 20,000 draws
void near(const EcnSetting& s, Bytes left, double p) {
  const double sd = std::sqrt(p * (1 - p) / 20'000);
  CHECK_BETWEEN(share(s, left), p - 5 * sd, p + 5 * sd);
}

void test_curve() {
  const EcnSetting s = curve(400'000, 1'600'000, 0.2);
  CHECK_EQ(share(s, 0), 0);
  CHECK_EQ(share(s, 400'000), 0);    // at kmin: not yet
  CHECK_EQ(share(s, 1'600'001), 1);  // above kmax: always
  near(s, 1'600'000, 0.2);           // at kmax: pmax
  near(s, 1'000'000, 0.1);           // half way
  near(s, 520'000, 0.02);
  near(curve(700'000, 1'600'000, 0.2), 1'000'000, 0.2 / 3);  // kmin
  near(curve(400'000, 1'900'000, 0.2), 1'000'000, 0.08);     // kmax
  near(curve(400'000, 1'600'000, 0.9), 1'000'000, 0.45);     // pmax
}

void test_edges() {
  CHECK_EQ(share(curve(400'000, 1'600'000, 0), 1'600'000), 0);
  CHECK_EQ(share(curve(400'000, 1'600'000, 0), 1'600'001), 1);
  const EcnSetting step = curve(5000, 5000, 0.3);
  CHECK_EQ(share(step, 5000), 0);
  CHECK_EQ(share(step, 5001), 1);
  // a draw is used up only between kmin and kmax, so that quiet ports stay in step
  RandomStream used(1, Purpose::kMarking, 1), untouched(1, Purpose::kMarking, 1);
  ecn_marks(step, 1, used);
  ecn_marks(step, 6000, used);
  CHECK(used.next() == untouched.next());
  for (const auto& [kmin, kmax, pmax] : {std::tuple{2.0, 1.0, 0.5}, std::tuple{1.0, 2.0, 1.5}}) {
    CHECK_REFUSED(curve(kmin, kmax, pmax), "expected 0 <= kmin <= kmax and 0 <= pmax <= 1");
  }
}

}  // namespace
}  // namespace dcqcn

int main() {
  using namespace dcqcn;
  test_curve();
  test_edges();
  return check::result("ecn");
}
