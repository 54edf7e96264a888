// The fluid engine where the answer is known by hand, or is that of the packet engine.
#include "sim/simulation.hpp"
#include "tests/check.hpp"
#include "tests/worlds.hpp"

namespace dcqcn {
namespace {

std::string world(int hosts, const std::string& traffic) {
  std::string text = worlds::one_switch(hosts, "", 80, 1'000'000, 187'500);
  text.resize(text.size() - 4);  // without `end`
  return text + worlds::kPfc + traffic + "end\n";
}

struct Ran {
  std::vector<FinishedFlow> flows;
  Totals totals;
};

Ran ran(const std::string& compiled, const std::string& engine, Time until,
        Time every = kPicosPerSecond) {
  Simulation sim(compiled, 1, engine);
  Ran found;
  while (!sim.done() && sim.now() < until) {
    sim.advance(std::min(sim.now() + every, until));
    const IntervalData& r = sim.report();
    found.flows.insert(found.flows.end(), r.log.finished.begin(), r.log.finished.end());
  }
  found.totals = sim.totals();
  return found;
}

constexpr Time kMilli = 1000 * kPicosPerMicro;

// nothing is in its way: the ideal time, to a part in a thousand
void test_a_flow_alone_takes_its_ideal_time() {
  for (const char* bytes : {"1", "1000", "1001", "50000", "5000000"}) {
    const std::string traffic = std::string("workload flows\nflow 0 1 ") + bytes + " 7000000\n";
    const Ran run = ran(world(2, traffic), "fluid", kMilli);
    CHECK_EQ(run.flows.size(), std::size_t{1});
    const FinishedFlow& f = run.flows.at(0);
    CHECK(f.fct >= f.ideal);
    CHECK_BETWEEN(static_cast<double>(f.fct) / static_cast<double>(f.ideal), 1.0, 1.001);
    CHECK_EQ(run.totals.marks, std::uint64_t{0});
  }
}

// two at one port without marks share it, and both end when all bytes are through
void test_two_flows_share_a_port() {
  const Ran run =
      ran(world(3, "workload flows\nflow 0 2 300000 0\nflow 1 2 300000 0\n"), "fluid", kMilli);
  CHECK_EQ(run.flows.size(), std::size_t{2});
  for (const FinishedFlow& f : run.flows) {
    CHECK_BETWEEN(static_cast<double>(f.fct) / static_cast<double>(f.ideal), 1.8, 1.9);
  }
}

std::string incast(int senders, const std::string& bytes) {
  std::string hosts = "1";
  for (int h = 2; h <= senders; ++h) hosts += "," + std::to_string(h);
  return world(senders + 1,
               "workload incast dst=0 bytes=" + bytes + " rounds=1 hosts=" + hosts + "\n");
}

double ratio(double a, double b) { return a / b; }

// too small for a mark: the last one ends when with packets
void test_an_unmarked_incast_ends_when_packets_do() {
  for (const int senders : {2, 4, 15}) {
    const Ran packets = ran(incast(senders, "20000"), "window", 10 * kMilli);
    const Ran fluid = ran(incast(senders, "20000"), "fluid", 10 * kMilli);
    CHECK_EQ(fluid.flows.size(), packets.flows.size());
    CHECK_BETWEEN(ratio(static_cast<double>(fluid.flows.back().fct),
                        static_cast<double>(packets.flows.back().fct)),
                  0.85, 1.1);
  }
}

// as long as the first burst lasts: as many marks and CNPs
void test_a_marked_incast_meets_what_packets_meet() {
  const Ran packets = ran(incast(15, "1000000"), "window", kMilli / 2);
  const Ran fluid = ran(incast(15, "1000000"), "fluid", kMilli / 2);
  CHECK(packets.totals.cnps > 500);
  CHECK_BETWEEN(
      ratio(static_cast<double>(fluid.totals.marks), static_cast<double>(packets.totals.marks)),
      0.9, 1.1);
  CHECK_BETWEEN(
      ratio(static_cast<double>(fluid.totals.cnps), static_cast<double>(packets.totals.cnps)), 0.7,
      1.2);
}

std::string busy() {
  return world(5,
               "cdf 0 1000:0.5 100000:0.9 3000000:1\n"
               "workload poisson cdf=0 hosts=0,1,2,3,4 dsts=0,1,2,3,4 mean_gap_ps=60000000\n");
}

// the same bytes however often it is stopped, and from a copy
void test_cuts_and_copies_change_nothing() {
  Simulation whole(busy(), 3, "fluid"), cut(busy(), 3, "fluid");
  whole.advance(4 * kMilli);
  std::unique_ptr<Simulation> copy;
  for (Time t = 333'333; t < 4 * kMilli; t += 7'777'777) {
    cut.advance(t);
    if (!copy && t > kMilli) copy = cut.clone();
  }
  cut.advance(4 * kMilli);
  copy->advance(4 * kMilli);
  const IntervalData& a = whole.report();
  for (Simulation* other : {&cut, copy.get()}) {
    const IntervalData& b = other->report();
    CHECK_EQ(a.log.finished.size(), b.log.finished.size());
    CHECK(a.log.finished.size() > 100);
    CHECK_EQ(a.log.totals.cnps, b.log.totals.cnps);
    for (std::size_t i = 0; i < a.log.finished.size(); ++i) {
      CHECK_EQ(a.log.finished[i].fct, b.log.finished[i].fct);
    }
    for (std::size_t i = 0; i < a.ports.size(); ++i) {
      CHECK_EQ(a.ports[i].counters.tx_bytes, b.ports[i].counters.tx_bytes);
      CHECK_EQ(a.ports[i].pause, b.ports[i].pause);
    }
  }
}

// tiny flows that begin at any time of a step: none is lost
void test_all_flows_end() {
  std::string flows = "workload flows\n";
  for (int i = 0; i < 500; ++i) {
    flows += "flow " + std::to_string(i % 4) + " 4 " + std::to_string(1 + i * 7) + " " +
             std::to_string(i * 1'234'567) + "\n";
  }
  CHECK_EQ(ran(world(5, flows), "fluid", 10 * kMilli).flows.size(), std::size_t{500});
}

// messages of one queue pair end in order, however the queues change that each of them meets: a job
// that waits for an earlier one would never be done
void test_messages_of_a_queue_pair_do_not_overtake() {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    unsigned drawn = seed;
    const auto below = [&drawn](int n) {
      drawn = drawn * 1'664'525 + 1'013'904'223;
      return static_cast<int>(static_cast<std::uint64_t>(drawn) * static_cast<unsigned>(n) >> 32);
    };
    std::string job = "transport qp=pair\nworkload job hosts=0,1,2,3,4,5,6,7 rounds=1\n";
    for (int i = 0; i < 300; ++i) {
      const int src = below(8), any = below(8);
      const int dst = i % 3 > 0 ? (src == 1 ? 0 : 1) : (any == src ? (src + 1) % 8 : any);
      job += "node transfer " + std::to_string(src) + " " + std::to_string(dst) + " " +
             std::to_string(1 + below(30'000));
      if (i > 32 && below(2) == 0) job += " after=" + std::to_string(i - 16 - below(8));
      job += "\n";
    }
    Simulation sim(world(8, job), 1, "fluid");
    sim.advance(500 * kMilli);
    CHECK(sim.done());
  }
}

void test_what_it_has_not_is_named() {
  const std::string flow = "workload flows\nflow 0 1 1000 0\n";
  const auto open = [](const std::string& text) { return Simulation(text, 1, "fluid").now(); };
  CHECK_REFUSED(open("x" + world(2, flow)), "expected");
  CHECK_REFUSED(open(world(2, "scheme name=timely\n" + flow)), "scheme timely");
  CHECK_REFUSED(open(world(2, "class 3 weight=2\n" + flow)), "classes");
  CHECK_REFUSED(open(world(2, flow + "workload flows priority=4\nflow 1 0 1000 0\n")), "priorit");
}

}  // namespace
}  // namespace dcqcn

int main() {
  dcqcn::test_a_flow_alone_takes_its_ideal_time();
  dcqcn::test_two_flows_share_a_port();
  dcqcn::test_an_unmarked_incast_ends_when_packets_do();
  dcqcn::test_a_marked_incast_meets_what_packets_meet();
  dcqcn::test_cuts_and_copies_change_nothing();
  dcqcn::test_all_flows_end();
  dcqcn::test_messages_of_a_queue_pair_do_not_overtake();
  dcqcn::test_what_it_has_not_is_named();
  return dcqcn::check::result("fluid_test");
}
