// The checks themselves: integers are compared as integers, beyond what a double can tell apart.
#include "tests/check.hpp"

#include "model/base/units.hpp"

namespace dcqcn {
namespace {

// how many checks of `call` fail; they are printed, but are no failures of this test
template <class Call>
int failures_of(Call&& call) {
  const int before = check::failures;
  call();
  const int found = check::failures - before;
  check::failures = before;
  return found;
}

void test_integers() {
  CHECK_EQ(failures_of([] { CHECK_EQ(kNever - 1, kNever); }), 1);
  CHECK_EQ(failures_of([] { CHECK_EQ(kNever, kNever); }), 0);
  CHECK_EQ(failures_of([] { CHECK_EQ(~std::uint64_t{0}, -1); }), 1);
  CHECK_EQ(failures_of([] { CHECK_EQ(3u, 3); }), 0);
}

void test_others() {
  CHECK_EQ(failures_of([] { CHECK_EQ(2.5, 2); }), 1);
  CHECK_EQ(failures_of([] { CHECK_EQ(2.0, 2); }), 0);
}

}  // namespace
}  // namespace dcqcn

int main() {
  using namespace dcqcn;
  test_integers();
  test_others();
  return check::result("check");
}
