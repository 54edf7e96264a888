// Flows that start at random and flows without an end.
#include <algorithm>
#include <cmath>

#include "model/flows/transport.hpp"
#include "model/flows/workload.hpp"
#include "tests/check.hpp"
#include "tests/worlds.hpp"

namespace dcqcn {
namespace {

constexpr Time kDelay = 5'000'000;
const std::string kStreams =
    "workload streams hosts=1,2,3 dsts=0,7 bytes=unlimited flows=6000 start_ps=1000000 "
    "within_ps=100000000\n";

std::vector<FlowStart> all_of(const std::string& workload, std::uint64_t seed) {
  const Scenario s = Scenario::parse(worlds::one_switch(8, workload));
  FlowSource source(s, kDelay, seed);
  std::vector<FlowStart> out;
  source.take_until(kNever, out);
  CHECK(source.exhausted());
  return out;
}

// uniform in the window, senders and receivers in turn, another seed other starts
void test_starts() {
  const auto flows = all_of(kStreams, 7);
  CHECK_EQ(flows.size(), 6000);
  std::vector<int> tenths(10), senders(8), receivers(8);
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const FlowStart& f = flows[i];
    CHECK(i == 0 || flows[i - 1].start <= f.start);
    CHECK(f.bytes == kUnlimited && f.messages == 1 && f.priority == 3);
    ++tenths[static_cast<std::size_t>((f.start - 1'000'000) / 10'000'000)];
    ++senders[static_cast<std::size_t>(f.src)];
    ++receivers[static_cast<std::size_t>(f.dst)];
  }
  // five standard deviations of a binomial share
  for (const int n : tenths) CHECK_BETWEEN(n, 600 - 5 * std::sqrt(540), 600 + 5 * std::sqrt(540));
  CHECK(senders[1] == 2000 && senders[2] == 2000 && senders[3] == 2000);
  CHECK(receivers[0] == 3000 && receivers[7] == 3000);
  CHECK(all_of(kStreams, 8)[0].start != flows[0].start);
  CHECK_EQ(all_of(kStreams, 7)[5999].start, flows[5999].start);
}

void test_sizes() {
  const std::string text = "workload streams hosts=1 dsts=0 flows=2 bytes=";
  CHECK_EQ(all_of(text + "700\n", 1)[1].bytes, 700);
  CHECK_EQ(all_of(text + "700\n", 1)[1].start, 0);  // all at once without a window
  CHECK_EQ(all_of("workload flows\nflow 1 0 unlimited 3\n", 1)[0].bytes, kUnlimited);
  const auto refused = [&](const std::string& lines, const char* why) {
    CHECK_REFUSED(all_of(lines, 1), why);
  };
  refused(text + "endless\n", "bytes = 'endless'");
  refused("workload streams hosts=1,2 dsts=2 flows=1 bytes=5\n", "host 2 is in hosts and in dsts");
  refused("workload streams hosts=1 dsts=none flows=1 bytes=5\n", "dsts is empty");
  refused("workload incast hosts=1 dst=0 bytes=unlimited\n", "bytes = 'unlimited'");
}

struct World {
  Scenario scenario;
  Topology topology;
  FlowSource source;
  IntervalLog log;
  TransportLayer transport;

  explicit World(const std::string& rest)
      : scenario(Scenario::parse(worlds::one_switch(3, rest))),
        topology(scenario),
        source(scenario, topology.smallest_delay(), 1),
        transport(scenario, topology, source, log) {}
  std::uint32_t start(Bytes bytes) { return transport.start_flow({0, bytes, 0, 2, 0, 1, 3}, 0); }
};

// far beyond the packets that are numbered ahead: sent, delivered and acknowledged, never finished
void test_a_flow_without_an_end() {
  World w("workload flows\n");
  const std::uint32_t slot = w.start(kUnlimited);
  Qp& q = w.transport.qp(slot);
  constexpr std::uint32_t kPackets = 200'000;
  Replies replies;
  for (std::uint32_t i = 0; i < kPackets; ++i) {
    const Packet p = w.transport.send(q, i);
    if (p.seq != i || p.last || p.bytes != 1062) CHECK(!"a packet like every other");
    w.transport.on_data(p, 2, i, replies);
    w.transport.on_ack(q, replies.packets[0], i);
  }
  CHECK_EQ(q.unacked, kPackets);
  CHECK(w.transport.may_send(q));
  CHECK_EQ(w.transport.live_flows(), 0);
  CHECK_EQ(w.transport.unlimited_flows(), 1);
  CHECK_EQ(w.log.totals.delivered, Bytes{1000} * kPackets);
  CHECK(w.log.finished.empty());
}

// a NACK sends it back over the place where numbers were added
void test_going_back() {
  World w("pfc enabled=0 lossless=3\nworkload flows\n");
  Qp& q = w.transport.qp(w.start(kUnlimited));
  for (std::uint32_t i = 0; i < 70'000; ++i) w.transport.send(q, i);
  Packet nack{};
  nack.kind = static_cast<std::uint64_t>(Kind::kNack);
  nack.seq = 65'000;
  w.transport.on_ack(q, nack, 70'000);
  CHECK_EQ(w.log.totals.retransmitted, 5000);
  for (std::uint32_t i = 65'000; i < 140'000; ++i) {
    const Packet p = w.transport.send(q, i);
    if (p.seq != i || p.retransmit != (i < 70'000)) CHECK(!"goes on behind the last ACK");
  }
  CHECK(w.transport.may_send(q));
}

// with kept queue pairs it has one of its own, so that the others are sent
void test_beside_kept_queue_pairs() {
  World w("transport qp=pair\nworkload flows\n");
  const std::uint32_t kept = w.start(500), endless = w.start(kUnlimited);
  CHECK(endless != kept);
  CHECK(w.start(kUnlimited) != endless);
  CHECK_EQ(w.start(500), kept);
  CHECK_EQ(w.transport.live_flows(), 2);
  CHECK_EQ(w.transport.unlimited_flows(), 2);
}

}  // namespace
}  // namespace dcqcn

int main() {
  using namespace dcqcn;
  test_starts();
  test_sizes();
  test_a_flow_without_an_end();
  test_going_back();
  test_beside_kept_queue_pairs();
  return check::result("streams");
}
