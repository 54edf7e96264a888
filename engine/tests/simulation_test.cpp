// Whole simulations whose end is known: flows that lose packets in a lossless class, the largest
// switch, and the end of time.
#include "sim/simulation.hpp"

#include "tests/check.hpp"
#include "tests/worlds.hpp"

namespace dcqcn {
namespace {

// 32 hosts send 200 kB each to one, 20 times; 100 Gb/s, 0.1 us, 600 kB of buffer
std::string tight_incast(long headroom) {
  std::string text = worlds::one_switch(33, "", 80, 100'000, headroom);
  const std::string from = "buffer=12582912";
  text.replace(text.find(from), from.size(), "buffer=600000");
  std::string hosts = "1";
  for (int h = 2; h < 33; ++h) hosts += "," + std::to_string(h);
  text.resize(text.size() - 4);  // without `end`
  return text + worlds::kPfc + "workload incast dst=0 bytes=200000 rounds=20 hosts=" + hosts +
         "\nend\n";
}

// 2 x 1250 B under way, 3 frames of 1062 B and a PFC frame of 64 B
constexpr long kEnough = 2500 + 3 * 1062 + 64;

struct End {
  bool done = false;
  std::uint64_t drops = 0;
  Time now = 0;
};

End end_of(const std::string& compiled, const std::string& engine) {
  Simulation sim(compiled, 1, engine);
  while (!sim.done() && sim.now() < kPicosPerSecond) sim.advance(sim.now() + kPicosPerSecond / 50);
  sim.report();
  return {sim.done(), sim.totals().drops, sim.now()};
}

// a lossless class with too little headroom loses packets, and its senders have the timer
void test_flows_end_where_headroom_is_short() {
  for (const char* engine : {"window", "event"}) {
    const End tight = end_of(tight_incast(3750), engine);
    CHECK(tight.drops > 0);
    CHECK(tight.done);
    const End enough = end_of(tight_incast(kEnough), engine);
    CHECK_EQ(enough.drops, 0);
    CHECK(enough.done);
  }
}

bool lossy(const std::string& compiled) {
  return Simulation(compiled, 1, "window").transport().lossy();
}

void test_what_headroom_is_enough() {
  CHECK(!lossy(tight_incast(kEnough)));
  CHECK(lossy(tight_incast(kEnough - 1)));
  const Scenario s = Scenario::parse(tight_incast(kEnough));
  CHECK_EQ(s.headroom_needed(s.links[0]), kEnough);
  LinkSpec link = s.links[0];
  link.delay = 100'001;  // a part of a byte counts as one, there and back
  CHECK_EQ(s.headroom_needed(link), kEnough + 1);
  Scenario other = s;
  other.pfc.lossless = 0b11000;  // the pause of the other priority may be ahead
  CHECK_EQ(other.headroom_needed(s.links[0]), kEnough + 64);
  other.wire.cnp = 2000;  // and the longest frame of all is on the wire
  CHECK_EQ(other.headroom_needed(s.links[0]), kEnough + 64 + 2000 - 1062);
  CHECK(other.short_of_headroom() == &other.links[0]);
  CHECK(other.can_lose(3) && s.can_lose(4) && !s.can_lose(3));
  other.pfc.enabled = false;
  CHECK(other.short_of_headroom() == nullptr);
}

// Host 0 is paused (two flows into host 1) and goes on acknowledging messages of host 3. Its ACKs
// wait behind flows of twenty hosts into host 3: more than headroom is there for.
std::string acks_of_a_paused_host() {
  std::string text = worlds::one_switch(24, "", 80, 100'000, kEnough);
  const std::string from = "buffer=12582912";
  text.replace(text.find(from), from.size(), "buffer=1000000");
  text.resize(text.size() - 4);  // without `end`
  text += worlds::kPfc;
  text.insert(text.find("resume_offset=3072") + 18, " ack_class=data");
  text += "workload flows\nflow 0 1 1000000 0\nflow 2 1 1000000 0\n";
  for (int i = 0; i < 1000; ++i) text += "flow 3 0 1000 0\n";
  for (int h = 4; h < 24; ++h) text += "flow " + std::to_string(h) + " 3 200000 0\n";
  return text + "end\n";
}

// an ACK that finds the headroom full is taken: lost, it would leave its flow open for ever
void test_acks_as_data_are_not_lost() {
  for (const char* engine : {"window", "event"}) {
    const End end = end_of(acks_of_a_paused_host(), engine);
    CHECK_EQ(end.drops, 0);
    CHECK(end.done);
  }
}

// ACKs that could drop are refused
void test_acks_as_data_need_headroom() {
  const auto with_acks = [](long headroom) {
    std::string text = tight_incast(headroom);
    return text.insert(text.find("resume_offset=3072") + 18, " ack_class=data");
  };
  CHECK_EQ(Scenario::parse(with_acks(kEnough)).links.size(), 33);
  CHECK_REFUSED(Scenario::parse(with_acks(kEnough - 1)),
                "ack_class = data needs a headroom of 5750 B for the link 0 33, which has 5749 B");
}

// the window engine numbers the ports of a switch with 12 bits
void test_the_largest_switch() {
  const std::string last = "workload flows\nflow 4095 0 3000 0\nflow 1 4095 3000 0\n";
  for (const char* engine : {"window", "event"}) {
    const std::string text = worlds::one_switch(4096, "pfc enabled=0\n" + last, 80, 100'000);
    CHECK(end_of(text, engine).done);
  }
  CHECK_REFUSED(Scenario::parse(worlds::one_switch(4097, "pfc enabled=0\n" + last)),
                "switch 4097 has 4097 ports; expected at most 4096");
}

// a packet that starts in the last picoseconds has its round trip right
void test_the_end_of_time() {
  const std::string start = std::to_string(kEndOfTime - 100 * kPicosPerMicro);
  const std::string text =
      worlds::one_switch(2, worlds::kPfc + "workload flows\nflow 0 1 3000 " + start + "\n");
  for (const char* engine : {"window", "event"}) {
    Simulation sim(text, 1, engine);
    sim.advance(kEndOfTime);
    CHECK(sim.done());
    const IntervalData& report = sim.report();
    CHECK_EQ(report.log.finished.size(), 1);
    CHECK_EQ(report.log.finished[0].fct, report.log.finished[0].ideal);
    CHECK_REFUSED(sim.advance(kEndOfTime + 1), "time ends at 36028797018963968 ps");
  }
}

}  // namespace
}  // namespace dcqcn

int main() {
  using namespace dcqcn;
  test_flows_end_where_headroom_is_short();
  test_what_headroom_is_enough();
  test_acks_as_data_are_not_lost();
  test_acks_as_data_need_headroom();
  test_the_largest_switch();
  test_the_end_of_time();
  return check::result("simulation");
}
