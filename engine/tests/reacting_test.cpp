// Storage and parameter server: who sends what to whom when a message has come, by hand.
#include "model/flows/reacting.hpp"

#include <map>

#include "model/flows/workload.hpp"
#include "tests/check.hpp"
#include "tests/worlds.hpp"

namespace dcqcn {
namespace {

constexpr Time kDelay = 5'000'000;

Scenario scenario_of(const std::string& workload) {
  return Scenario::parse(worlds::one_switch(8, workload));
}

std::vector<FlowStart> take(FlowSource& source, Time until) {
  std::vector<FlowStart> out;
  source.take_until(until, out);
  return out;
}

std::vector<FlowStart> arrive(FlowSource& source, const FlowStart& f, Time when) {
  std::vector<FlowStart> out;
  source.arrived(f.workload, f.tag, f.dst, when, out);
  return out;
}

bool is(const FlowStart& f, int src, int dst, Bytes bytes, Time start) {
  return f.src == src && f.dst == dst && f.bytes == bytes && f.start == start;
}

const std::string kStorage = " dsts=5,6,7 block_min=4096 block_max=4096 bytes=64 start_ps=1000";

void test_a_read() {
  const Scenario s = scenario_of("workload storage hosts=1 depth=1 copies=2 read_share=1 rounds=2" +
                                 kStorage + "\n");
  FlowSource source(s, kDelay, 1);
  CHECK_EQ(source.next_time(), 1000);
  const auto request = take(source, 2000);
  CHECK_EQ(request.size(), 1);
  const int node = request[0].dst;
  CHECK(is(request[0], 1, node, 64, 1000) && node >= 5);
  const auto block = arrive(source, request[0], 3000);
  CHECK_EQ(block.size(), 1);
  CHECK(is(block[0], node, 1, 4096, 3000));
  const auto next = arrive(source, block[0], 9000);  // depth 1: the next IO only now
  CHECK_EQ(next.size(), 1);
  CHECK(is(next[0], 1, next[0].dst, 64, 9000));
  const auto last = arrive(source, arrive(source, next[0], 9500)[0], 9900);
  CHECK(last.empty());  // two IOs
  CHECK(source.exhausted());
}

void test_a_write() {
  const Scenario s =
      scenario_of("workload storage hosts=1 depth=1 copies=2 read_share=0" + kStorage + "\n");
  FlowSource source(s, kDelay, 1);
  const auto block = take(source, 2000);
  const int node = block[0].dst;
  CHECK(is(block[0], 1, node, 4096, 1000));
  const auto copies = arrive(source, block[0], 3000);
  CHECK_EQ(copies.size(), 2);
  CHECK(is(copies[0], node, node == 7 ? 5 : node + 1, 4096, 3000));
  CHECK(is(copies[1], node, node == 5 ? 7 : node - 1, 4096, 3000));
  const auto second = arrive(source, copies[1], 4000);  // the later copy is there first
  CHECK(is(second[0], copies[1].dst, node, 64, 4000));
  CHECK(arrive(source, second[0], 5000).empty());
  const auto first = arrive(source, copies[0], 6000);
  const auto reply = arrive(source, first[0], 7000);
  CHECK_EQ(reply.size(), 1);
  CHECK(is(reply[0], node, 1, 64, 7000));
  CHECK_EQ(arrive(source, reply[0], 8000).size(), 1);
}

// `depth` outstanding at any time, IO by IO, and the draws of a host in the order of its IOs
void test_depth(int depth) {
  const Scenario s = scenario_of(
      "workload storage hosts=0,1 dsts=4,5,6,7 copies=0 read_share=0.25 block_min=512 "
      "block_max=65536 bytes=64 rounds=1000 depth=" +
      std::to_string(depth) + "\n");
  FlowSource source(s, kDelay, 9);
  std::vector<FlowStart> live = take(source, 1);
  CHECK_EQ(live.size(), 2 * depth);
  std::map<int, int> outstanding;
  for (const FlowStart& f : live) ++outstanding[f.src];
  CHECK(outstanding[0] == depth && outstanding[1] == depth);
  std::map<int, int> seen, issued, reads;
  Time now = 1;
  double bytes = 0;
  for (const FlowStart& f : live) {
    ++issued[f.src];
    reads[f.src] += f.bytes == 64;
  }
  RandomStream any(3, Purpose::kRounds, 1);
  while (!live.empty()) {  // in any order
    const std::size_t pick = any.below(static_cast<std::uint32_t>(live.size()));
    const FlowStart done = live[pick];
    live.erase(live.begin() + static_cast<std::ptrdiff_t>(pick));
    for (const FlowStart& f : arrive(source, done, ++now)) {
      live.push_back(f);
      if (f.src > 1) continue;
      ++issued[f.src];
      reads[f.src] += f.bytes == 64;
      bytes += f.bytes == 64 ? 0 : static_cast<double>(f.bytes);
      CHECK(f.bytes == 64 || f.bytes % 512 == 0);
    }
    if (done.dst <= 1) ++seen[done.dst];
    const int open = issued[0] - seen[0];
    CHECK(open == depth || issued[0] == 1000);
  }
  CHECK(seen[0] == 1000 && seen[1] == 1000);
  for (int host : {0, 1}) CHECK_BETWEEN(reads[host], 250 - 69, 250 + 69);  // 5 deviations
  // after the first 2 x depth, writes of 512 B x (1 ... 128), mean 33,024 B
  const double writes = (2000 - 2 * depth) * 0.75;
  CHECK_BETWEEN(bytes / writes, 29'000, 37'000);
  CHECK(source.exhausted());
}

// the k-th IO of a host is the same at any depth
void test_same_ios() {
  std::vector<std::vector<std::pair<int, Bytes>>> all;
  for (int depth : {1, 8}) {
    const Scenario s = scenario_of(
        "workload storage hosts=2 dsts=4,5,6,7 copies=0 read_share=0 block_min=1 block_max=4096 "
        "bytes=64 rounds=64 depth=" +
        std::to_string(depth) + "\n");
    FlowSource source(s, kDelay, 9);
    std::vector<FlowStart> live = take(source, 1);
    auto& ios = all.emplace_back();
    for (std::size_t i = 0; i < live.size(); ++i) {
      if (live[i].src == 2) ios.emplace_back(live[i].dst, live[i].bytes);
      for (const FlowStart& f : arrive(source, FlowStart(live[i]), 5)) live.push_back(f);
    }
  }
  CHECK_EQ(all[0].size(), 64);
  CHECK(all[0] == all[1]);
}

void test_parameter_server() {
  const Scenario s = scenario_of(
      "workload parameter-server hosts=1,2,3 dst=0 bytes=700 off_ps=9000000 rounds=2\n");
  FlowSource source(s, kDelay, 1);
  const auto pushes = take(source, 1);
  CHECK_EQ(pushes.size(), 3);
  CHECK(is(pushes[2], 3, 0, 700, 0));
  CHECK(arrive(source, pushes[1], 100).empty());
  CHECK(arrive(source, pushes[0], 200).empty());
  const auto pulls = arrive(source, pushes[2], 300);
  CHECK_EQ(pulls.size(), 3);
  CHECK(is(pulls[0], 0, 1, 700, 300) && is(pulls[2], 0, 3, 700, 300));
  CHECK(source.exhausted());  // until a worker has its answer
  CHECK(arrive(source, pulls[2], 400).empty());
  CHECK_EQ(source.next_time(), 400 + 9'000'000);
  const auto early = take(source, 9'000'401);  // a worker waits for its own answer only
  CHECK(is(early[0], 3, 0, 700, 9'000'400));
  CHECK(arrive(source, early[0], 9'500'000).empty());
  for (int w : {0, 1}) arrive(source, pulls[static_cast<std::size_t>(w)], 10'000'000);
  const auto rest = take(source, 20'000'000);
  CHECK_EQ(rest.size(), 2);
  arrive(source, rest[0], 21'000'000);
  for (const FlowStart& f : arrive(source, rest[1], 22'000'000)) {
    CHECK(arrive(source, f, 23'000'000).empty());
  }
  CHECK(source.exhausted());  // two iterations

  // no iteration follows an answer at stop or later, and a gap is a link's delay at least
  const Scenario stopped =
      scenario_of("workload parameter-server hosts=1,2 dst=0 bytes=700 off_ps=0 stop_ps=1000\n");
  FlowSource loop(stopped, kDelay, 1);
  auto first = take(loop, 1);
  arrive(loop, first[0], 900);
  for (const FlowStart& f : arrive(loop, first[1], 999)) arrive(loop, f, 2000);
  CHECK_EQ(loop.next_time(), 2000 + kDelay);
  first = take(loop, kDelay + 2001);
  arrive(loop, first[0], 8'000'000);
  for (const FlowStart& f : arrive(loop, first[1], 8'000'001)) arrive(loop, f, 9'000'000);
  CHECK(loop.exhausted());
}

}  // namespace
}  // namespace dcqcn

int main() {
  using namespace dcqcn;
  test_a_read();
  test_a_write();
  test_depth(1);
  test_depth(128);
  test_same_ios();
  test_parameter_server();
  return check::result("reacting");
}
