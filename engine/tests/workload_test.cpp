// Which flow starts when: random arrivals against their distributions (bounds of about five
// standard deviations, fixed seeds), rounds, lists.
#include "model/flows/workload.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tests/check.hpp"
#include "tests/worlds.hpp"

namespace dcqcn {
namespace {

constexpr Time kDelay = 5'000'000;

Scenario scenario_of(const std::string& workloads, int hosts = 8) {
  return Scenario::parse(worlds::one_switch(hosts, workloads));
}

std::vector<FlowStart> take(FlowSource& source, Time until) {
  std::vector<FlowStart> out;
  source.take_until(until, out);
  return out;
}

bool same(const FlowStart& a, const FlowStart& b) {
  return a.start == b.start && a.bytes == b.bytes && a.src == b.src && a.dst == b.dst &&
         a.workload == b.workload;
}

// chi-square of equally likely cells, as a number of standard deviations above its mean
double excess(const std::vector<int>& counts) {
  double total = 0, sum = 0;
  for (int c : counts) total += c;
  const double expected = total / static_cast<double>(counts.size());
  for (int c : counts) sum += (c - expected) * (c - expected) / expected;
  const double dof = static_cast<double>(counts.size()) - 1;
  return (sum - dof) / std::sqrt(2 * dof);
}

void test_poisson() {
  const Scenario s = scenario_of(
      "cdf 0 100:0.25 1000:0.5 5000:1\n"
      "workload poisson cdf=0 hosts=0,1,2 dsts=0,1,2,3,4 mean_gap_ps=1000000\n");
  FlowSource source(s, kDelay, 42);
  const auto flows = take(source, 10'000'000'000);  // 10,000 mean gaps for each of 3 sources
  const double n = static_cast<double>(flows.size());
  CHECK_BETWEEN(n, 30'000 - 5 * std::sqrt(30'000), 30'000 + 5 * std::sqrt(30'000));
  CHECK(std::is_sorted(flows.begin(), flows.end(),
                       [](const auto& a, const auto& b) { return a.start < b.start; }));

  // gaps of one source: deciles of the exponential distribution are equally full
  std::vector<int> deciles(10);
  std::vector<int> dsts(4);
  Time last = 0;
  for (const FlowStart& f : flows) {
    if (f.src != 1) continue;
    const double u = 1 - std::exp(-static_cast<double>(f.start - last) / 1e6);
    ++deciles[std::min<std::size_t>(9, static_cast<std::size_t>(u * 10))];
    last = f.start;
    CHECK(f.dst != 1);
    ++dsts[static_cast<std::size_t>(f.dst == 0 ? 0 : f.dst - 1)];
  }
  CHECK(excess(deciles) < 5);
  CHECK(excess(dsts) < 5);

  // sizes: a quarter at 100 B (point mass), a quarter between 100 and 1000, half up to 5000,
  // each part uniform. Mean 0.25 * 100 + 0.25 * 550 + 0.5 * 3000 = 1662.5
  std::vector<int> parts(4);
  double sum = 0;
  for (const FlowStart& f : flows) {
    CHECK(f.bytes >= 100 && f.bytes <= 5000);
    ++parts[f.bytes == 100 ? 0 : f.bytes <= 1000 ? 1 : f.bytes <= 3000 ? 2 : 3];
    sum += static_cast<double>(f.bytes);
  }
  CHECK(excess(parts) < 5);
  CHECK_BETWEEN(sum / n, 1662.5 - 5 * 1600 / std::sqrt(n), 1662.5 + 5 * 1600 / std::sqrt(n));
}

void test_seeds() {
  const Scenario s = scenario_of(
      "cdf 0 100:0.25 1000:1\n"
      "workload poisson cdf=0 hosts=0,1,2 dsts=0,1,2,3 mean_gap_ps=1000000\n"
      "workload poisson cdf=0 hosts=4 dsts=0 mean_gap_ps=2000000\n");
  FlowSource once(s, kDelay, 7), pieces(s, kDelay, 7), other(s, kDelay, 8);
  const auto flows = take(once, 500'000'000);
  std::vector<FlowStart> again;
  for (Time t = 777'777; t < 500'000'000; t += 777'777) pieces.take_until(t, again);
  pieces.take_until(500'000'000, again);
  CHECK_EQ(again.size(), flows.size());
  CHECK(std::equal(flows.begin(), flows.end(), again.begin(), again.end(), same));
  const auto different = take(other, 500'000'000);
  CHECK(!std::equal(flows.begin(), flows.end(), different.begin(), different.end(), same));

  // sources do not disturb each other: without the second workload the first is the same
  const Scenario alone = scenario_of(
      "cdf 0 100:0.25 1000:1\n"
      "workload poisson cdf=0 hosts=0,1,2 dsts=0,1,2,3 mean_gap_ps=1000000\n");
  FlowSource one(alone, kDelay, 7);
  const auto first = take(one, 500'000'000);
  std::vector<FlowStart> filtered;
  for (const FlowStart& f : flows) {
    if (f.workload == 0) filtered.push_back(f);
  }
  CHECK(std::equal(first.begin(), first.end(), filtered.begin(), filtered.end(), same));
}

// a window [2 ms, 5 ms) that comes again every 10 ms
void test_windows() {
  const Scenario s = scenario_of(
      "cdf 0 100:1\n"
      "workload poisson cdf=0 hosts=0,1,2,3 dsts=4 mean_gap_ps=1000000 start_ps=2000000000 "
      "stop_ps=5000000000 repeat_ps=10000000000\n"
      "workload poisson cdf=0 hosts=5 dsts=4 mean_gap_ps=1000000 start_ps=2000000000 "
      "stop_ps=5000000000\n");
  FlowSource source(s, kDelay, 3);
  std::vector<int> per_window(5);
  int once = 0;
  std::vector<int> tenths(10);
  for (const FlowStart& f : take(source, 50'000'000'000)) {
    const Time in_period = f.start % 10'000'000'000;
    CHECK(in_period >= 2'000'000'000 && in_period < 5'000'000'000);
    if (f.workload == 1) {
      CHECK(f.start < 5'000'000'000);
      ++once;
    } else {
      ++per_window[static_cast<std::size_t>(f.start / 10'000'000'000)];
      ++tenths[static_cast<std::size_t>((in_period - 2'000'000'000) / 300'000'000)];
    }
  }
  for (int n : per_window) CHECK_BETWEEN(n, 12'000 - 550, 12'000 + 550);
  CHECK(excess(tenths) < 5);
  CHECK_BETWEEN(once, 3000 - 275, 3000 + 275);
}

// report every flow of a round as complete, one after another from `at` on
void finish(FlowSource& source, const std::vector<FlowStart>& flows, Time at) {
  for (const FlowStart& f : flows) source.finished(f.workload, f.tag, f.src, at++);
}

void test_rounds() {
  const Scenario s = scenario_of(
      "workload alltoall hosts=1,3,5 bytes=700 off_ps=20000000 start_ps=1000 rounds=3\n");
  FlowSource source(s, kDelay, 1);
  CHECK_EQ(source.next_time(), 1000);
  const auto flows = take(source, 1001);
  std::set<std::pair<int, int>> pairs;
  for (const FlowStart& f : flows) {
    CHECK(f.start == 1000 && f.bytes == 700 && f.src != f.dst);
    pairs.insert({f.src, f.dst});
  }
  CHECK_EQ(flows.size(), 6);
  CHECK_EQ(pairs.size(), 6);
  CHECK(source.exhausted());  // until the round is over
  finish(source, flows, 90'000'000);
  CHECK_EQ(source.next_time(), 90'000'005 + 20'000'000);
  finish(source, take(source, 200'000'000), 300'000'000);
  finish(source, take(source, 400'000'000), 500'000'000);
  CHECK(source.exhausted());  // three rounds

  // without a pause the next round starts one link delay after the last completion; not at stop
  const Scenario quick =
      scenario_of("workload incast hosts=1,2,3 dst=0 bytes=10 off_ps=0 stop_ps=100000000\n");
  FlowSource loop(quick, kDelay, 1);
  finish(loop, take(loop, 1), 1000);
  CHECK_EQ(loop.next_time(), 1002 + kDelay);
  const auto second = take(loop, kDelay + 2000);
  CHECK_EQ(second.size(), 3);
  CHECK(second[0].dst == 0 && second[2].src == 3);
  finish(loop, second, 99'000'000);
  CHECK(loop.exhausted());
}

void test_permutation() {
  const Scenario s = scenario_of("workload permutation hosts=0,1,2,3,4,5,6,7 bytes=10 off_ps=0\n");
  FlowSource source(s, kDelay, 5), twin(s, kDelay, 5), other(s, kDelay, 6);
  std::map<std::vector<int>, int> seen;
  std::vector<int> successor_of_0(7);
  int differs = 0;
  Time now = 0;
  for (int round = 0; round < 700; ++round) {
    const Time at = source.next_time();
    const auto flows = take(source, at + 1);
    const auto again = take(twin, at + 1);
    const auto else_ = take(other, at + 1);
    CHECK(std::equal(flows.begin(), flows.end(), again.begin(), again.end(), same));
    differs += !std::equal(flows.begin(), flows.end(), else_.begin(), else_.end(), same);
    std::vector<int> to(8, -1);
    std::set<int> receivers;
    for (const FlowStart& f : flows) {
      CHECK(f.src != f.dst);
      to[static_cast<std::size_t>(f.src)] = f.dst;
      receivers.insert(f.dst);
    }
    CHECK_EQ(receivers.size(), 8);
    ++successor_of_0[static_cast<std::size_t>(to[0] - 1)];
    ++seen[to];
    now = at + 1000;
    finish(source, flows, now);
    finish(twin, flows, now);
    finish(other, flows, now);
  }
  CHECK(excess(successor_of_0) < 5);
  CHECK(differs > 690);
  CHECK(seen.size() > 600);  // of 5040 cyclic permutations
}

void test_lists() {
  const Scenario s = scenario_of(
      "workload flows priority=3\nflow 3 1 500 2000\nflow 0 1 100 1000\nflow 2 1 300 2000\n"
      "workload pairs pairs=0>1:1000,2>3:5000 off_ps=0 rounds=1 priority=4\n");
  FlowSource source(s, kDelay, 1);
  const auto flows = take(source, 5000);
  CHECK_EQ(flows.size(), 5);
  CHECK(flows[0].workload == 1 && flows[0].bytes == 1000 && flows[0].priority == 4);
  CHECK(flows[1].workload == 1 && flows[1].src == 2 && flows[1].dst == 3);
  CHECK(flows[2].start == 1000 && flows[2].src == 0);
  CHECK(flows[3].start == 2000 && flows[3].src == 3);  // equal starts keep the file's order
  CHECK(flows[4].start == 2000 && flows[4].src == 2);
  CHECK(source.exhausted());
}

}  // namespace
}  // namespace dcqcn

int main() {
  using namespace dcqcn;
  test_poisson();
  test_seeds();
  test_windows();
  test_rounds();
  test_permutation();
  test_lists();
  return check::result("workload");
}
