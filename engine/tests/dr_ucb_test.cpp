// DR-UCB against a table worked out by hand, its version of whole numbers against it, and both on
// bandits whose best arm changes.
//
//   dr_ucb_test            the test
//   dr_ucb_test --tables   the tables alone
//   dr_ucb_test --regret   regret/T at T = 10^6, mean of 20 seeds (docs/reference/decisions.md has
//   the result)
#include <cmath>
#include <cstring>

#include "model/schemes/dr_ucb_fixed.hpp"
#include "tests/check.hpp"

namespace dcqcn {
namespace {

// K = 2, gamma = 1/2, xi = 1/2, epsilon = 1/4: both arms in turn at 0, 1, 8, 9, ...
//   t  index of 0           index of 1           arm  reward  n_0         n_1
//   0  turn                                      0    1/2     1           0
//   1  turn                                      1    1       0.5         1
//   2  .5   + .6368         1     + .4503        1    0       0.25        1.5
//   3  .5   + 1.0579        .3333 + .4319        0    1       1.125       0.75
//   4  .9444 + .5286        .3333 + .6474        0    0       1.5625      0.375
//   5  .34  + .4601         .3333 + .9391        1    1       0.78125     1.1875
//   6  .34  + .6584         .8947 + .5341        1    1       0.390625    1.59375
//   7  .34  + .9366         .9608 + .4637        1    0       0.1953125   1.796875
//   8  turn                                      0    0       1.09765625  0.8984375
//   9  turn                                      1    1/2     .548828125  1.44921875
//  10  .0302 + .7941        .4771 + .4887        1
void test_table() {
  const UcbRules rules{2, 0.5, 0.25, 0.5};
  CHECK_EQ(rules.period(), 8);
  const struct {
    int arm;
    double reward, n0, n1;
  } table[] = {{0, 0.5, 1, 0},
               {1, 1, 0.5, 1},
               {1, 0, 0.25, 1.5},
               {0, 1, 1.125, 0.75},
               {0, 0, 1.5625, 0.375},
               {1, 1, 0.78125, 1.1875},
               {1, 1, 0.390625, 1.59375},
               {1, 0, 0.1953125, 1.796875},
               {0, 0, 1.09765625, 0.8984375},
               {1, 0.5, 0.548828125, 1.44921875}};
  DrUcb learner;
  for (const auto& row : table) {
    CHECK_EQ(learner.choose(rules), row.arm);
    learner.learn(rules, row.arm, row.reward);
    learner.advance(rules);
    CHECK_EQ(learner.tried(0), row.n0);
    CHECK_EQ(learner.tried(1), row.n1);
  }
  CHECK_EQ(learner.mean(0), 0.0166015625 / 0.548828125);
  CHECK_EQ(learner.choose(rules), 1);
}

// The same with rewards of 0 and 1 on whole numbers, 256 to a play; halves are exact down to 1/256.
// n and s are the discounted plays and rewards, of 256.
//   t  index of 0         index of 1         arm  reward  n_0    n_1    s_0    s_1
//   0  turn                                  0    1       256    0      256    0
//   1  turn                                  1    1       128    256    128    256
//   2  1     + .6368      1     + .4503      0    0       320    128    64     128
//   3  .2    + .4731      1     + .7481      1    1       160    320    32     320
//   4  .2    + .7091      1     + .5014      1    0       80     416    16     160
//   5  .2    + 1.0287     .3846 + .4511      0    1       296    208    264    80
//   6  .8919 + .5412      .3846 + .6457      0    1       404    104    388    40
//   7  .9604 + .4660      .3846 + .9184      0    0       458    52     194    20
//   8  turn                                  0    0       485    26     97     10
//   9  turn                                  1    1       242.5  269    48.5   261
//  10  .2    + .6044      .9703 + .5738      1
void test_fixed_table() {
  const FixedUcbRules rules{UcbRules{2, 0.5, 0.25, 0.5}};
  CHECK_EQ(rules.batch, 1);
  CHECK_EQ(rules.fraction, 8);
  CHECK_EQ(rules.period, 8);
  CHECK_EQ(rules.discount, 32768);
  const struct {
    int arm;
    bool reward;
    double n0, n1, s0, s1;
  } table[] = {{0, true, 256, 0, 256, 0},     {1, true, 128, 256, 128, 256},
               {0, false, 320, 128, 64, 128}, {1, true, 160, 320, 32, 320},
               {1, false, 80, 416, 16, 160},  {0, true, 296, 208, 264, 80},
               {0, true, 404, 104, 388, 40},  {0, false, 458, 52, 194, 20},
               {0, false, 485, 26, 97, 10},   {1, true, 242.5, 269, 48.5, 261}};
  FixedDrUcb learner;
  for (const auto& row : table) {
    CHECK_EQ(learner.choose(rules), row.arm);
    learner.learn(rules, row.arm, row.reward ? 0 : 255);
    learner.advance(rules);
    // a half is rounded up or down
    CHECK_BETWEEN(learner.tried(rules, 0) * 256, row.n0 - 0.5, row.n0 + 0.5);
    CHECK_EQ(learner.tried(rules, 1) * 256, row.n1);
    CHECK_BETWEEN(learner.mean(0), (row.s0 - 0.5) * 65536 / (row.n0 + 0.5) - 1,
                  (row.s0 + 0.5) * 65536 / (row.n0 - 0.5));
    if (row.n1 > 0) CHECK_EQ(learner.mean(1), std::floor(row.s1 * 65536 / row.n1));
  }
  CHECK_EQ(learner.choose(rules), 1);
}

// Two arms, of which none is ever rewarded, turns of two in 8: apart from turns the first arm
// without a play is chosen. Once arm 0 has a play that is arm 1. There is no bonus for one play in
// all.
//   t       0       1       2 to 7   8       9
//   arm     turn 0  turn 1  0        turn 0  turn 1
// With the default gamma sums are discounted once in 256 iterations: 255 plays are 255 x 8 = 2040,
// the 256th makes 2040 x 62265/65536 + 8 = 1946.17 of it.
void test_fixed_edges() {
  const FixedUcbRules rules{UcbRules{2, 0.5, 0.25, 0.5}};
  FixedDrUcb idle;
  for (const int arm : {0, 1, 0, 0, 0, 0, 0, 0, 0, 1}) {
    CHECK_EQ(idle.choose(rules), arm);
    idle.advance(rules);
  }
  FixedDrUcb one;
  one.advance(rules);
  one.advance(rules);
  one.learn(rules, 0, 255);
  CHECK_EQ(one.choose(rules), 1);
  CHECK_EQ(one.index(rules, 0, 256), 0);
  const FixedUcbRules slow{UcbRules{}};
  FixedDrUcb late;
  for (int i = 0; i < 255; ++i) late.learn(slow, 0, 0);
  CHECK_EQ(late.tried(slow, 0) * 8, 2040);
  late.learn(slow, 0, 0);
  CHECK_BETWEEN(late.tried(slow, 0) * 8, 1946, 1947);
}

void test_edges() {
  const UcbRules always{4, 0.9, 1.0, 0.5001};  // epsilon 1: nothing but turns
  DrUcb turns;
  for (int t = 0; t < 9; ++t) {
    CHECK_EQ(turns.choose(always), t % 4);
    turns.learn(always, t % 4, 1);
    turns.advance(always);
  }
  // of equals the first; an arm without a play comes before all
  const UcbRules rules{3, 1.0, 0.01, 0.5001};
  DrUcb learner;
  for (int t = 0; t < 3; ++t) learner.advance(rules);
  CHECK(!learner.ready(rules));
  learner.learn(rules, 0, 1);
  CHECK_EQ(learner.choose(rules), 1);
  learner.learn(rules, 1, 1);
  CHECK_EQ(learner.choose(rules), 2);
  learner.learn(rules, 2, 1);
  CHECK(learner.ready(rules));
  CHECK_EQ(learner.choose(rules), 0);
  learner.learn(rules, 0, 0);
  CHECK_EQ(learner.choose(rules), 1);
  // a larger epsilon in mid-run: the count of turns starts over inside the shorter period
  DrUcb late;
  const UcbRules rare{4, 0.9, 0.01, 0.5001}, often{4, 0.9, 0.4, 0.5001};
  for (int t = 0; t < 123; ++t) late.advance(rare);
  CHECK_EQ(late.choose(often), 3);  // 123 mod 10
}

void test_whole_numbers() {
  for (const std::uint32_t x : {1u, 2u, 3u, 10u, 41024u, 65535u, 1u << 20, ~0u}) {
    const double exact = std::log2(static_cast<double>(x));
    CHECK_BETWEEN(fixed::log2_q16(x) / 65536.0, exact - 2e-5, exact + 1e-12);
  }
  for (const std::uint64_t x : {0ull, 1ull, 2ull, 99ull, 1ull << 40, ~0ull >> 1}) {
    const std::uint64_t root = fixed::sqrt_of(x);
    CHECK(root * root <= x && (root + 1) * (root + 1) > x);
  }
  const FixedUcbRules rules{UcbRules{}};
  CHECK_EQ(rules.period, 266);
  CHECK_EQ(rules.batch, 256);
  CHECK_EQ(rules.fraction, 3);      // 5129 plays at most: 13 bits
  CHECK_EQ(rules.discount, 62265);  // 0.9998^256 = 0.95009
  const FixedUcbRules quick{UcbRules{4, 0.9, 0.0001, 0.5}};
  CHECK_EQ(quick.batch, 1);
  CHECK_EQ(quick.fraction, 8);
  CHECK_EQ(quick.period, 16383);  // 14 bits
  CHECK_EQ(sizeof(FixedDrUcb), 20);
}

// a bandit with K arms; the best one changes in turn
struct Bandit {
  double best, gap;
  int switches;
  std::int64_t length;
  double mean(std::int64_t t, int arm) const {
    return arm == t * (switches + 1) / length % 4 ? best : best - gap;
  }
};

// The same plays and rewards to both: what the whole numbers say of them.
void test_fixed_follows() {
  const UcbRules rules;
  const FixedUcbRules whole(rules);
  DrUcb exact;
  FixedDrUcb small;
  RandomStream draws(5, Purpose::kMonitor, 0);
  const Bandit bandit{0.9, 0.3, 2, 60'000};
  double worst_tried = 0, worst_mean = 0, worst_index = 0;
  int same = 0;
  for (std::int64_t t = 0; t < bandit.length; ++t) {
    const int arm = exact.choose(rules);
    same += arm == small.choose(whole) && t > 1000;
    const bool win = draws.uniform() < bandit.mean(t, arm);
    exact.learn(rules, arm, win);
    small.learn(whole, arm, win ? 0 : 255);
    exact.advance(rules);
    small.advance(whole);
    if (t < 1000) continue;
    double total = 0;
    for (int i = 0; i < 4; ++i) total += small.tried(whole, i);
    for (int i = 0; i < 4; ++i) {
      const double n = small.tried(whole, i);
      worst_tried = std::max(worst_tried, std::abs(n / exact.tried(i) - 1));
      worst_mean = std::max(worst_mean, std::abs(small.mean(i) / 65536.0 - exact.mean(i)));
      // the index alone, of the sums that it has
      const double index = small.mean(i) / 65536.0 + std::sqrt(rules.xi * std::log(total) / n);
      const std::uint32_t sum = static_cast<std::uint32_t>(total * 8);
      worst_index = std::max(worst_index, std::abs(small.index(whole, i, sum) / 65536.0 - index));
    }
  }
  CHECK_BETWEEN(worst_tried, 0.0, 0.08);
  CHECK_BETWEEN(worst_mean, 0.0, 0.06);
  CHECK_BETWEEN(worst_index, 0.0, 1e-4);
  CHECK(same > 0.75 * static_cast<double>(bandit.length));  // each loses its own way
  std::printf("plays %.3f, means %.4f, index %.2g, same arm %.3f\n", worst_tried, worst_mean,
              worst_index, same / static_cast<double>(bandit.length - 1000));
}

// {floating, whole numbers}: regret/T, mean over the seeds (pseudo-regret: means, not draws)
std::pair<double, double> regret(const Bandit& bandit, int seeds) {
  const UcbRules rules;
  const FixedUcbRules whole(rules);
  double lost = 0, lost_whole = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    RandomStream draws(static_cast<std::uint64_t>(seed), Purpose::kMonitor, 1);
    DrUcb exact;
    FixedDrUcb small;
    for (std::int64_t t = 0; t < bandit.length; ++t) {
      const int a = exact.choose(rules), b = small.choose(whole);
      lost += bandit.best - bandit.mean(t, a);
      lost_whole += bandit.best - bandit.mean(t, b);
      exact.learn(rules, a, draws.uniform() < bandit.mean(t, a));
      small.learn(whole, b, draws.uniform() < bandit.mean(t, b) ? 0 : 255);
      exact.advance(rules);
      small.advance(whole);
    }
  }
  const double plays = static_cast<double>(bandit.length) * seeds;
  return {lost / plays, lost_whole / plays};
}

// Theorem 1: regret/T goes to at most epsilon, plus a part that falls with the root of T. That
// part is the tolerance: 0.001 at T = 10^6, 0.01 at 10^5, where a change costs as many plays.
void check_regret(std::int64_t length, int seeds, double tolerance) {
  for (const double gap : {0.6, 0.3, 0.1}) {
    const auto [exact, whole] = regret({0.9, gap, 3, length}, seeds);
    CHECK_BETWEEN(exact, 0.0, 0.015 + tolerance);
    CHECK_BETWEEN(whole, 0.0, exact + 0.002);
    std::printf("T = %lld, gap %.1f, 3 changes, %d seeds: regret/T %.5f, whole numbers %.5f\n",
                static_cast<long long>(length), gap, seeds, exact, whole);
  }
}

}  // namespace
}  // namespace dcqcn

int main(int argc, char** argv) {
  using namespace dcqcn;
  if (argc == 2 && std::strcmp(argv[1], "--regret") == 0) {
    check_regret(1'000'000, 20, 0.001);
    return check::result("dr_ucb --regret");
  }
  test_table();
  test_fixed_table();
  test_fixed_edges();
  test_edges();
  if (check::tables_only(argc, argv)) return check::result("dr_ucb --tables");
  test_whole_numbers();
  test_fixed_follows();
  check_regret(100'000, 3, 0.01);
  return check::result("dr_ucb");
}
