// TIMELY against a table worked out by hand. Times are in us, rates in Gb/s; every knob changes a
// number at least once.
#include "model/schemes/timely.hpp"

#include <stdexcept>

#include "tests/check.hpp"
#include "tests/hook_bench.hpp"

namespace dcqcn {
namespace {

// numbers that can be checked on paper
TimelySetting plain() {
  TimelySetting s;
  s.t_low = us(50);
  s.t_high = us(500);
  s.min_rtt = us(20);
  s.weight = 512;
  s.beta = 0.8;
  s.step = gbps(1);
  s.hai_after = 2;
  s.hai_factor = 5;
  s.segment = 2;
  s.max_cut = 0.5;
  s.min_rate = gbps(10);
  s.start_rate = gbps(40);
  return s;
}

// an update every 100 us, whatever the segment is
struct Bench : HookBench<Timely> {
  double now = 0;

  explicit Bench(const TimelySetting& s = plain()) : HookBench(s) { start(0); }
  void ack(double t, double rtt, std::uint32_t packets) {
    scheme.on_ack(sender, {us(rtt), packets}, {}, at(t));
  }
  Rate update(double rtt) {
    now += 100;
    ack(now, rtt, setting.segment);
    return rate();
  }
};

template <class Change>
Bench with(Change&& change) {
  TimelySetting s = plain();
  change(s);
  return Bench(s);
}

//  #    rtt   difference    smoothed            rule                              rate
//  1     40   none yet      0                   below T_low: + 1                  41
//  2     60   +20           10                  gradient 1/2: x (1 - 0.8/2)       24.6
//  3     60   0             5                   gradient 1/4: x (1 - 0.8/4)       19.68
//  4     50   -10           -2.5                not below T_low; first of a row   20.68
//  5     50   0             -1.25               second                            21.68
//  6     50   0             -0.625              third, more than 2: + 5           26.68
//  7     49   -1            -0.8125             below T_low is never hyper: + 1   27.68
//  8    600   +551          275.09375           above T_high: x (1 - 0.8/6)       23.989333333
//  9    500   -100          87.546875           not above; at most half           11.994666666
// 10    500   0             43.773437 (a half   at most half, but not below the   10
//                           ps is rounded down) lowest rate
// 11    100   -400          -178.113282         first of a row                    11
void test_table() {
  Bench b;
  CHECK_EQ(b.rate(), gbps(40));
  CHECK_EQ(b.update(40), gbps(41));
  CHECK_EQ(b.update(60), gbps(24.6));
  CHECK_EQ(b.sender.difference, us(10));
  CHECK_EQ(b.update(60), gbps(19.68));
  CHECK_EQ(b.update(50), gbps(20.68));
  CHECK_EQ(b.sender.difference, us(-2.5));
  CHECK_EQ(b.update(50), gbps(21.68));
  CHECK_EQ(b.update(50), gbps(26.68));
  CHECK_EQ(b.update(49), gbps(27.68));
  CHECK_EQ(b.update(600), 23'989'333'333);
  CHECK_EQ(b.sender.difference, us(275.09375));
  CHECK_EQ(b.update(500), 11'994'666'666);
  CHECK_EQ(b.update(500), gbps(10));
  CHECK_EQ(b.sender.difference, 43'773'437);
  CHECK_EQ(b.update(100), gbps(11));
  CHECK_EQ(b.sender.difference, -178'113'282);
  CHECK_EQ(b.notes.counters[Timely::kCuts], 5);
  CHECK_EQ(b.notes.counters[Timely::kIncreases], 6);
}

// The first update of the table that a knob changes.
void test_each_knob() {
  CHECK_EQ(with([](auto& s) { s.start_rate = 0; }).rate(), gbps(100));
  CHECK_EQ(with([](auto& s) { s.start_rate = gbps(500); }).rate(), gbps(100));
  // 40 is in the band, not below it, and the first of a row: the same step, but the fourth is hyper
  Bench low = with([](auto& s) { s.t_low = us(10); });
  for (const double rate : {41, 42, 47, 52}) CHECK_EQ(low.update(40), gbps(rate));
  Bench high = with([](auto& s) { s.t_high = us(30); });
  CHECK_EQ(high.update(60), gbps(40 * (1 - 0.8 / 2)));
  Bench inverse = with([](auto& s) { s.t_high = us(30), s.t_low = us(70); });
  CHECK_EQ(inverse.update(60), gbps(41));  // T_low is asked first
  Bench rtt = with([](auto& s) { s.min_rtt = us(40); });
  rtt.update(40);
  CHECK_EQ(rtt.update(60), gbps(41 * 0.8));
  Bench weight = with([](auto& s) { s.weight = 256; });
  weight.update(40);
  CHECK_EQ(weight.update(60), gbps(41 * 0.8));
  Bench beta = with([](auto& s) { s.beta = 0.4; });
  beta.update(40);
  CHECK_EQ(beta.update(60), gbps(41 * 0.8));
  CHECK_EQ(with([](auto& s) { s.step = gbps(3); }).update(40), gbps(43));
  CHECK_EQ(with([](auto& s) { s.step = 4'000'000'000'000'000'000; }).update(40), gbps(100));
  Bench factor = with([](auto& s) { s.hai_factor = 9; });
  for (const double rate : {41, 42, 51}) CHECK_EQ(factor.update(60), gbps(rate));
  Bench after = with([](auto& s) { s.hai_after = 1; });
  for (const double rate : {41, 46, 51}) CHECK_EQ(after.update(60), gbps(rate));
  Bench cap = with([](auto& s) { s.max_cut = 0.25; });
  cap.update(40);
  CHECK_EQ(cap.update(60), gbps(41 * 0.75));
}

// Two packets of 1000 B a segment, 80 ns each at the line of 100 Gb/s; the rate is 40 Gb/s, 200 ns
// a packet, and 20 Gb/s from the second segment's second packet on. The third is cut by the
// message's end, and the fourth leaves late because others had the link.
//   starts      0    80    400   480    1000   1400   2300
//   next from   80   400   480   1000   1400   1480   2380
void test_segments() {
  SchemeSpec spec = spec_of("timely");
  spec.options = {{"pacing", "segment"}};
  Timely scheme(spec, {});
  const TimelySetting setting = plain();
  const Connection connection{.src = 0, .dst = 1, .line = gbps(100)};
  Timely::Nic nic{};
  Timely::Sender q{};
  SchemeNotes notes;
  notes.counters.resize(Timely::kCounters.size());
  const auto at = [&](double ns) {
    return Here<Timely>{connection, setting, nic, notes, us(ns / 1000)};
  };
  scheme.start(q, at(0));
  NoFields none;
  const auto next = [&](double ns, bool last = false) {
    scheme.on_send(q, {952, last, false, 1000}, none, at(ns));
    return scheme.next_send(q, -1);
  };
  CHECK(!scheme.resting(q));
  CHECK_EQ(next(0), us(0.080));
  CHECK_EQ(next(80), us(0.400));
  CHECK_EQ(next(400), us(0.480));
  q.rate = gbps(20);
  CHECK_EQ(next(480), us(1.000));         // 400 + 200 + 400
  CHECK_EQ(next(1000, true), us(1.400));  // the message ends the segment
  CHECK_EQ(next(1400), us(1.480));
  CHECK_EQ(next(2300), us(2.380));  // late: the segment's time is over, the line's is not
  CHECK_EQ(next(2380), us(2.460));
  Timely by_packets(spec_of("timely"), {});  // nothing to do at a send
  CHECK(by_packets.resting(q));
  const Time before = q.next_send;
  by_packets.on_send(q, {952, false, false, 1000}, none, at(9000));
  CHECK_EQ(q.next_send, before);
  CHECK_EQ(by_packets.next_send(q, 7), 7);
}

// segment 2, shortest time between updates 20: which of these ACKs update?
//   t        5     19.999  20    30     39.999   40     60 (NACK)   60    61
//   packets  1     1       0     1      1        0      5           0     1
//   update   no    early   yes   early  early    yes    no sample   yes   early, 1 of 2
// From the line, where a flow starts; round trips above T_high, so every update cuts.
void test_when_to_update() {
  Bench b = with([](auto& s) { s.start_rate = 0; });
  CHECK_EQ(b.rate(), gbps(100));
  b.notes.tracing = true;
  const auto updates = [&](double t, std::uint32_t packets, double rtt = 600) {
    const Rate before = b.rate();
    b.ack(t, rtt, packets);
    return b.rate() != before;
  };
  CHECK(!updates(5, 1));
  CHECK(!updates(19.999, 1));
  CHECK(updates(20, 0));
  CHECK(!updates(30, 1));
  CHECK(!updates(39.999, 1));
  CHECK(updates(40, 0));
  CHECK(!updates(60, 5, 0));
  CHECK(updates(60, 0));
  CHECK(!updates(61, 1));
  CHECK(!updates(100, 0));
  CHECK(updates(100, 1));
  CHECK_EQ(b.notes.events.size(), 4);
}

// a row of updates without a rising round trip ends with any cut and with any rise
void test_rows_end() {
  Bench rise;
  rise.update(60);
  rise.update(60);
  rise.update(40);  // still falling: third of the row, but below T_low
  CHECK_EQ(rise.sender.stage, 3);
  rise.update(49);  // rises, (-10 + 9)/2 = -0.5 does not
  CHECK_EQ(rise.sender.stage, 4);
  rise.update(49.6);  // (-0.5 + 0.6)/2 does; below T_low the rate still increases
  CHECK_EQ(rise.sender.stage, 0);
  CHECK_EQ(rise.rate(), gbps(45));
  Bench cut;
  cut.update(600);
  CHECK_EQ(cut.sender.stage, 0);  // the gradient is 0, but the rate was cut
}

void test_new_setting() {
  Bench b;
  TimelySetting next = plain();
  next.min_rate = gbps(60);
  const TimelySetting before = std::exchange(b.setting, next);
  b.scheme.change_setting(b.sender, before, b.at(1));
  CHECK_EQ(b.rate(), gbps(60));
  next.min_rate = gbps(300);  // beyond the line, which wins
  b.setting = next;
  b.scheme.change_setting(b.sender, next, b.at(2));
  CHECK_EQ(b.rate(), gbps(100));
}

void test_trace() {
  Bench b;
  b.notes.tracing = true;
  b.update(40);
  b.update(60);
  CHECK_EQ(b.notes.events.size(), 2);
  CHECK_EQ(b.notes.events[0].what, Timely::kIncrease);
  const SchemeEvent& e = b.notes.events[1];
  CHECK_EQ(e.what, Timely::kCut);
  CHECK_EQ(e.when, us(200));
  CHECK_EQ(e.values[0], 24.6e9);
  CHECK_EQ(e.values[1], 60e-6);
  CHECK_EQ(e.values[2], 0.5);
  CHECK_EQ(e.values[3], 0);
}

void test_rows() {
  std::vector<double> si;
  for (const auto& knob : kTimelyKnobs) si.push_back(knob.row.initial_si());
  const TimelySetting s = TimelySetting::from_si(si.data());
  CHECK_EQ(s.t_low, us(50));
  CHECK_EQ(s.t_high, us(500));
  CHECK_EQ(s.min_rtt, us(20));
  CHECK_EQ(s.weight, 896);  // 0.875
  CHECK_EQ(s.beta, 0.8);
  CHECK_EQ(s.step, gbps(0.1));
  CHECK_EQ(s.hai_after, 5);
  CHECK_EQ(s.hai_factor, 5);
  CHECK_EQ(s.segment, 16);
  CHECK_EQ(s.max_cut, 0.5);
  CHECK_EQ(s.min_rate, gbps(0.1));
  CHECK_EQ(s.start_rate, 0);
  const std::pair<const char*, double> bad[] = {{"timely_min_rtt", 0},
                                                {"timely_min_rate", 0},
                                                {"timely_beta", 1.5},
                                                {"timely_max_cut", 1.5},
                                                {"timely_weight", 1.5}};
  for (const auto& [name, value] : bad) {
    std::vector<double> row = si;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (std::string(kTimelyKnobs[i].row.name) == name) row[i] = value;
    }
    CHECK(row != si);
    CHECK_REFUSED(TimelySetting::from_si(row.data()), "NIC setting: ");
  }
}

}  // namespace
}  // namespace dcqcn

int main(int argc, char** argv) {
  using namespace dcqcn;
  test_table();
  test_when_to_update();
  test_segments();
  if (check::tables_only(argc, argv)) return check::result("timely --tables");
  test_each_knob();
  test_rows_end();
  test_new_setting();
  test_trace();
  test_rows();
  return check::result("timely");
}
