// Dolce-RC+ against a table worked out by hand. Times are in us, rates in Gb/s.
#include "model/schemes/dolce_plus.hpp"

#include <stdexcept>

#include "tests/check.hpp"
#include "tests/hook_bench.hpp"

namespace dcqcn {
namespace {

// rates 25, 50 and 100; messages of two packets; turns at 0..2 of 6
DolcePlusSetting plain() {
  DolcePlusSetting s;
  s.rules = {3, 0.5, 0.5, 0.5};
  s.message = 2000;
  return s;
}

SchemeSpec options(const char* memory) {
  SchemeSpec spec = spec_of(DolcePlus::kName);
  spec.options = {{"memory", memory}};
  return spec;
}

struct Bench : HookBench<DolcePlus> {
  explicit Bench(const DolcePlusSetting& s = plain(), const char* memory = "pair")
      : HookBench(s, options(memory)) {
    start(0);
  }
  DolcePlus::DataFields send(double t, Bytes payload = 1000, bool last = false) {
    DolcePlus::DataFields fields;
    scheme.on_send(sender, {payload, last, false}, fields, at(t));
    return fields;
  }
  // a message of two packets at t: what the second one carries
  DolcePlus::DataFields message(double t) {
    send(t);
    return send(t);
  }
  void arrive(double t, const DolcePlus::DataFields& fields, bool marked) {
    scheme.on_data(receiver, {1000, marked, true, false}, fields, at(t));
  }
  void ack(double t, double rtt) {
    DolcePlus::AckFields fields;
    scheme.on_reply(receiver, fields, at(t));
    scheme.on_ack(sender, {us(rtt), 1}, fields, at(t));
  }
  // both packets of the message arrive, `marks` of them marked; its ACK comes at t
  void deliver(double t, double rtt, const DolcePlus::DataFields& last, int marks) {
    DolcePlus::DataFields first = last;
    first.ends = false;
    arrive(t, first, marks > 1);
    arrive(t, last, marks > 0);
    ack(t, rtt);
  }
  const DrUcb& learner() { return nic.connections.of(sender.connection).learner; }
};

// A message takes 10.08 at best: 0.08 for its first packet, then a round trip of 10.
//    t    message leaves                arm  rate   ACK at t            reward of its arm
//    0    1, turn 0                     0    25
//    1    2, turn 1                     1    50
//    2    3, turn 2                     2    100
//    3    4, no turn, arms unknown      2    100
//   20                                              1, rtt 10, 1 mark   10.08/20, any marks = 0.504
//   21                                              2, rtt 12, 1 mark   10.08/20 (1 - 1/2) = 0.252
//   22                                              3, 2 marks          0
//   23.16                                           4, no mark          10.08/20.16 = 0.5
//   24    5, indices 2.09, 1.37, 0.79   0    25
//   25    6, turn 5 of 6: no turn       0    25
//   26    7, turn 0                     0    25
//   27    8, turn 1                     1    50
void test_table() {
  Bench b;
  DolcePlus::DataFields sent[9];
  const auto leaves = [&](int number, double t, int arm, double rate) {
    sent[number] = b.message(t);
    CHECK_EQ(sent[number].number, number);
    CHECK_EQ(sent[number].departure, us(t));
    CHECK_EQ(sent[number].arm, arm);
    CHECK(sent[number].ends);
    CHECK_EQ(b.rate(), gbps(rate));
  };
  CHECK_EQ(b.rate(), gbps(100));
  leaves(1, 0, 0, 25);
  leaves(2, 1, 1, 50);
  leaves(3, 2, 2, 100);
  leaves(4, 3, 2, 100);
  const auto mean = [&](int arm, double value) {
    CHECK_BETWEEN(b.learner().mean(arm), value - 1e-12, value + 1e-12);
  };
  b.deliver(20, 10, sent[1], 1);
  mean(0, 0.504);
  b.deliver(21, 12, sent[2], 1);
  mean(1, 0.252);
  b.deliver(22, 12, sent[3], 2);
  mean(2, 0);
  b.deliver(23.16, 12, sent[4], 0);
  mean(2, 0.5 / 1.5);
  CHECK_EQ(b.learner().tried(0), 0.125);
  leaves(5, 24, 0, 25);
  leaves(6, 25, 0, 25);
  leaves(7, 26, 0, 25);
  leaves(8, 27, 1, 50);
  CHECK_EQ(b.notes.counters[DolcePlus::kMessages], 4);
  CHECK_EQ(b.notes.counters[DolcePlus::kArm0], 4);
  CHECK_EQ(b.notes.counters[DolcePlus::kArm0 + 2], 2);
}

// What a receiver returns and a sender makes of it; flows end, packets are lost, ACKs repeat.
//    t   event                                            learned
//    0   message 1 begins, arm 0: 1000 B
//    1   300 B, the last of the flow: it ends
//    2   ACK with nothing in it                           -
//    3   a marked packet without fields arrives
//    5   the first packet of 1 arrives; ACK               -
//    6   the second one arrives, marked; NACK             -, no round trip is known
//    7   ACK: a round trip takes 10, arm 0         min(1, ..) (1 - 1/2)^0 = 1
//    8   the same ACK again                               -
//    9   message 2, arm 1: one packet of 4096 B is all
//   12   message 3, arm 2: two packets, the first is lost
//   29   2 arrived, marked; ACK: ideal 10, actual 20      10/20 (1 - 1)^1 = 0
//   32   the second packet of 3 arrived; ACK, rtt 12      10/20 (1 - 0)^2 = 0.5
//   33   message 4: no turn, indices 2.06, .75, 1.03      arm 0
void test_receiver_table() {
  for (const char* memory : {"pair", "qp"}) {
    Bench b(plain(), memory);
    b.notes.tracing = true;
    const auto learned = [&] { return b.notes.counters[DolcePlus::kMessages]; };
    const DolcePlus::DataFields first = b.send(0);
    CHECK(!first.ends);
    CHECK_EQ(b.rate(), gbps(25));
    const DolcePlus::DataFields last = b.send(1, 300, true);
    CHECK(last.ends);
    CHECK_EQ(last.number, 1);
    CHECK_EQ(last.departure, 0);
    b.ack(2, 0);
    b.arrive(3, {}, true);
    b.arrive(5, first, false);
    b.ack(5, 0);
    b.arrive(6, last, true);
    b.ack(6, 0);
    CHECK_EQ(learned(), 0);
    b.ack(7, 10);
    CHECK_EQ(learned(), 1);
    CHECK_EQ(b.learner().mean(0), 1);
    b.ack(8, 10);
    CHECK_EQ(learned(), 1);
    const DolcePlus::DataFields two = b.send(9, 4096);
    CHECK(two.ends);
    CHECK_EQ(two.arm, 1);
    b.send(12);
    const DolcePlus::DataFields three = b.send(12);
    CHECK_EQ(three.arm, 2);
    CHECK_EQ(b.rate(), gbps(100));
    b.arrive(28, two, true);
    b.ack(29, 12);
    CHECK_EQ(b.learner().mean(1), 0);
    b.arrive(31, three, false);
    b.ack(32, 12);
    CHECK_EQ(b.learner().mean(2), 0.5);
    CHECK_EQ(learned(), 3);
    CHECK_EQ(b.send(33).arm, 0);
    // the next flow of the two hosts goes on learning, that of another queue pair does not
    b.sender = {};
    b.start(34);
    CHECK_EQ(b.learner().ready(b.setting.rules), memory[0] == 'p');
    // what --trace tells: rate of the arm, completion time, ECN ratio, reward
    CHECK_EQ(b.notes.events.size(), 3);
    const SchemeEvent& e = b.notes.events[1];
    CHECK_EQ(e.when, us(29));
    CHECK_EQ(e.values[0], 50e9);
    CHECK_BETWEEN(e.values[1], 20e-6 - 1e-18, 20e-6 + 1e-18);
    CHECK_EQ(e.values[2], 1);
    CHECK_EQ(e.values[3], 0);
  }
}

// where a message ends: when it has its bytes, and with the last packet of the flow
void test_ends() {
  Bench b;
  CHECK(!b.send(0).ends);
  CHECK(b.send(1).ends);
  const DolcePlus::DataFields only = b.send(2, 300, true);
  CHECK(only.ends);
  CHECK_EQ(only.number, 2);
  CHECK_EQ(b.send(3).number, 3);
  Bench large;
  CHECK(large.send(0, 4096).ends);
}

// what the receiver returns: the last message that ended, once; fields may be missing
void test_acks() {
  Bench b;
  const DolcePlus::DataFields one = b.message(0), two = b.message(1);
  b.ack(5, 10);  // nothing has ended
  CHECK_EQ(b.notes.counters[DolcePlus::kMessages], 0);
  b.arrive(6, {}, true);  // a NIC of another scheme writes no fields
  b.ack(7, 10);
  CHECK_EQ(b.notes.counters[DolcePlus::kMessages], 0);
  b.deliver(10, 0, one, 1);  // a NACK is no round trip, but the one of before will do
  CHECK_EQ(b.notes.counters[DolcePlus::kMessages], 1);
  b.ack(11, 10);
  CHECK_EQ(b.notes.counters[DolcePlus::kMessages], 1);
  b.deliver(12, 10, two, 0);
  CHECK_EQ(b.notes.counters[DolcePlus::kMessages], 2);
  Bench fresh;
  fresh.deliver(10, 0, fresh.message(0), 0);  // no round trip is known yet
  CHECK_EQ(fresh.notes.counters[DolcePlus::kMessages], 0);
  // a reward is at most 1: the shortest round trip may be that of an earlier path
  Bench best;
  best.deliver(0.5, 10, best.message(0), 0);
  CHECK_EQ(best.learner().mean(0), 1);
}

void test_memory_outlives_flows() {
  for (const char* memory : {"pair", "qp"}) {
    Bench b(plain(), memory);
    b.deliver(20, 10, b.message(0), 0);
    b.sender = {};
    b.start(30);
    CHECK_EQ(b.learner().tried(0), memory[0] == 'p' ? 1 : 0);
    CHECK_EQ(b.message(31).arm, memory[0] == 'p' ? 1 : 0);
  }
}

void test_settings() {
  Bench one;
  one.setting.rules.arms = 1;  // nothing to choose
  CHECK_EQ(one.message(0).arm, 0);
  CHECK_EQ(one.rate(), gbps(100));
  std::vector<double> si;
  for (const auto& knob : kDolcePlusKnobs) si.push_back(knob.row.initial_si());
  const DolcePlusSetting s = DolcePlusSetting::from_si(si.data());
  CHECK_EQ(s.rules.arms, 6);
  CHECK_EQ(s.message, 8000);
  CHECK_EQ(s.rules.gamma, 0.9998);
  for (const auto& [at, value] : {std::pair{0, 9.0}, {0, 0.0}, {1, 0.0}, {2, 1.5}, {3, 0.0}}) {
    std::vector<double> bad = si;
    bad[static_cast<std::size_t>(at)] = value;
    CHECK_REFUSED(DolcePlusSetting::from_si(bad.data()), "expected ");
  }
}

}  // namespace
}  // namespace dcqcn

int main(int argc, char** argv) {
  using namespace dcqcn;
  test_table();
  test_receiver_table();
  if (check::tables_only(argc, argv)) return check::result("dolce_plus --tables");
  test_ends();
  test_acks();
  test_memory_outlives_flows();
  test_settings();
  return check::result("dolce_plus");
}
