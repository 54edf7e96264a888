// DCQCN+ against tables worked out by hand: its reaction point, the list of congested queue pairs,
// and whole jobs on both native engines. Times are in us, rates in Gb/s.
#include "model/schemes/dcqcn_plus.hpp"

#include <set>

#include "tests/check.hpp"
#include "tests/plus_network.hpp"

namespace dcqcn {
namespace {

using plus_network::Notifier;
using plus_network::Sent;

constexpr Time us(double t) { return static_cast<Time>(t * 1e6); }
constexpr Rate gbps(double r) { return static_cast<Rate>(r * 1e9); }

// the defaults with F = 1, g = 1/4 and alpha "large" above 0.3
PlusSetting plain() {
  PlusSetting s;
  s.threshold = 1;
  s.g = 0.25;
  s.alpha_large = 0.3;
  return s;
}

// a 100 Gb/s queue pair whose clock the test moves
struct Bench {
  PlusSetting s = plain();
  PlusReactionPoint q;
  bool paused = false;
  int increases = 0, held = 0;

  Bench() { q.start(gbps(100)); }
  void run(double t) {
    q.catch_up(s, us(t), paused,
               [this](const auto&, Time, bool skipped) { ++(skipped ? held : increases); });
  }
  void cnp(double t, double tau) {
    run(t);
    q.on_cnp(s, us(tau), us(t));
  }
  Rate rate(double t) {
    run(t);
    return q.rate;
  }
  Rate target(double t) {
    run(t);
    return q.target;
  }
};

//    t   event                                                       R             T      alpha
//    0   CNP, tau 10 us: alpha is 1, so half of R is cut             50            100    1
//   55   K = 55: fast recovery, S = 1 = F                            75            100
//   55   K_alpha = 55                                                                     0.75
//   60   CNP, tau 100: K = 200, K_alpha = 100                        46.875        75     0.8125
//  260   S = 1: fast recovery (before the tick of alpha)             60.9375       75
//  460   S = 2: additive; alpha 0.34 is large: T += 2                68.96875      77
//  660   S = 3: alpha 0.19: T += 1                                   73.484375     78
//  860   S = 4 = 4F: still additive                                  76.2421875    79
// 1060   S = 5: hyper, T += 1                                        78.12109375   80
// 1260   S = 6: T += 2                                               80.060546875  82
// 1460   S = 7: T += 3; half a bit/s is rounded up                   82.530273438  85
// 1660   S = 8: T += 4                                               85.765136719  89
// 1860   S = 9: T += 5                                               89.88256836   94
// 2060   S = 10: T += 6                                              94.94128418   100
// 2260   S = 11: T is capped at the line                             97.47064209   100
void test_table() {
  Bench b;
  CHECK_EQ(b.rate(0), gbps(100));
  CHECK(b.q.timer_next == kNever);
  b.cnp(0, 10);
  CHECK_EQ(b.q.rate, gbps(50));
  CHECK_EQ(b.q.alpha, 1.0);
  CHECK_EQ(b.rate(54.999), gbps(50));
  CHECK_EQ(b.rate(55), gbps(75));
  b.cnp(60, 100);
  CHECK_EQ(b.q.rate, gbps(46.875));
  CHECK_EQ(b.q.target, gbps(75));
  CHECK_EQ(b.q.alpha, 0.8125);
  CHECK_EQ(b.q.timer, us(200));
  CHECK_EQ(b.q.alpha_timer, us(100));
  CHECK_EQ(b.rate(259.999), gbps(46.875));
  CHECK_EQ(b.rate(260), gbps(60.9375));
  CHECK_EQ(b.target(460), gbps(77));
  CHECK_EQ(b.q.rate, gbps(68.96875));
  CHECK_EQ(b.target(660), gbps(78));
  CHECK_EQ(b.q.rate, gbps(73.484375));
  CHECK_EQ(b.target(860), gbps(79));
  CHECK_EQ(b.rate(860), gbps(76.2421875));
  CHECK_EQ(b.target(1060), gbps(80));
  CHECK_EQ(b.q.rate, gbps(78.12109375));
  CHECK_EQ(b.target(1260), gbps(82));
  CHECK_EQ(b.target(1460), gbps(85));
  CHECK_EQ(b.q.rate, 82'530'273'438);
  CHECK_EQ(b.rate(1660), 85'765'136'719);
  CHECK_EQ(b.target(1860), gbps(94));
  CHECK_EQ(b.rate(1860), 89'882'568'360);
  CHECK_EQ(b.target(2060), gbps(100));
  CHECK_EQ(b.rate(2260), 97'470'642'090);
  CHECK_EQ(b.q.target, gbps(100));
  // at full rate the timer stops, and the next CNP arms it again
  CHECK_EQ(b.rate(50'000), gbps(100));
  CHECK(b.q.timer_next == kNever);
  const int before = b.increases;
  b.cnp(60'000, 10);
  CHECK_EQ(b.increases, before);
  CHECK_EQ(b.q.rate, gbps(100));  // alpha had decayed to nothing
  CHECK_EQ(b.q.alpha, 0.25);
  b.cnp(60'001, 10);
  CHECK_EQ(b.q.rate, gbps(87.5));
  CHECK_EQ(b.rate(60'056), gbps(93.75));
}

// steps follow the rate where it is small, and the line where it is large
void test_steps_of_a_slow_queue_pair() {
  Bench b;
  b.cnp(0, 10);
  b.q.rate = b.q.target = gbps(1);
  b.q.stage = 1;
  CHECK_EQ(b.target(55), gbps(1.2));  // alpha 1: min(2 x 0.1 x 1, 2)
  CHECK_EQ(b.q.rate, gbps(1.1));
  b.q.alpha = 0.2;
  b.q.stage = 1;
  CHECK_EQ(b.target(110), gbps(1.31));  // min(0.1 x 1.1, 1)
  CHECK_EQ(b.q.rate, gbps(1.205));
  b.q.stage = 5;  // the sixth increase: 6 - 4 = 2, so min(R, 2) = R
  CHECK_EQ(b.target(165), gbps(1.31 + 1.205));
  b.s.hai_share = 0.5;
  const Rate rate = b.q.rate, target = b.q.target;
  b.q.stage = 5;
  CHECK_EQ(b.target(220), target + rate / 2);
  // the other two bounds
  b.s.ai_line = 0.0001;
  b.q.alpha = 0.0;
  b.q.stage = 1;
  const Rate before = b.q.target;
  CHECK_EQ(b.target(275), before + gbps(0.01));
  b.s.hai_line = 0.0001;
  b.q.stage = 5;
  CHECK_EQ(b.target(330), before + gbps(0.01) + gbps(0.02));
  // F = 0: the first increase is a hyper one
  Bench zero;
  zero.s.threshold = 0;
  zero.cnp(0, 10);
  zero.q.target = gbps(60);
  CHECK_EQ(zero.target(55), gbps(61));
}

void test_timers() {
  Bench b;
  b.cnp(0, 50);  // not above the limit
  CHECK_EQ(b.q.timer, us(55));
  CHECK_EQ(b.q.alpha_timer, us(55));
  b.cnp(1, 50.000001);
  CHECK_EQ(b.q.timer, us(100.000002));
  CHECK_EQ(b.q.alpha_timer, us(50.000001));
  // a packet takes longer than the period: at R_min = 10 Mb/s 1000 B take 800 us
  b.q.rate = 0;
  b.cnp(2, 100);
  CHECK_EQ(b.q.rate, gbps(0.01));
  CHECK_EQ(b.q.timer, us(1600));
  CHECK_EQ(b.q.alpha_timer, us(800));
  b.s.packet = 500;
  b.s.lambda = 3;
  b.s.lambda_alpha = 2;
  b.cnp(3, 100);
  CHECK_EQ(b.q.timer, us(1200));
  CHECK_EQ(b.q.alpha_timer, us(800));
  // a short period brings the short timers back
  b.s.timer = us(20);
  b.s.alpha_timer = us(10);
  b.cnp(4, 0);
  CHECK_EQ(b.q.timer, us(20));
  CHECK_EQ(b.q.alpha_timer, us(10));
}

void test_cut_and_alpha() {
  Bench b;
  b.s.initial_alpha = 0.5;
  b.s.cut = 0.25;
  b.cnp(0, 10);
  CHECK_EQ(b.q.rate, gbps(87.5));  // 1 - 0.5 / 4
  CHECK_EQ(b.q.alpha, 0.625);      // 0.75 x 0.5 + 0.25
  b.cnp(0.001, 10);
  CHECK_EQ(b.q.target, gbps(87.5));
  CHECK_EQ(b.q.rate, 73'828'125'000);
  b.s.min_share = 0.9;
  b.cnp(0.002, 10);
  CHECK_EQ(b.q.rate, gbps(90));
  // alpha has nothing left after a long time without a CNP, and costs nothing then
  b.cnp(1e9, 10);
  CHECK_EQ(b.q.alpha, 0.25);
}

// a timer that runs out while the priority is paused starts again; alpha goes on
void test_pause() {
  Bench b;
  b.cnp(0, 10);
  b.run(54);
  b.paused = true;
  CHECK_EQ(b.rate(120), gbps(50));
  CHECK_EQ(b.q.stage, 0);
  CHECK_EQ(b.held, 2);
  b.paused = false;
  CHECK_EQ(b.rate(164.999), gbps(50));
  CHECK_EQ(b.rate(165), gbps(75));
  CHECK_EQ(b.increases, 1);
  CHECK_EQ(b.q.alpha, 0.5625);  // ticks at 55 and 110; that at 165 comes after the increase
}

// in the NIC a PFC frame comes before the timers of its picosecond, those at 55, 110, ...
//    t   event                                   what ran since: increases, held
//    0   CNP
//   55   pause: the timer of now is held                         0          0
//  110   resume: the timer of now increases                      0          1
//  120   pause                                                   1          0
void test_a_pause_comes_before_the_timers() {
  Notifier n(100);
  n.mark(0, us(0));
  n.run(us(1));
  n.transport.on_control(n.transport.qp(n.slots[0]), n.packets.at(0), 0);
  const auto counted = [&n] {
    const std::vector<std::uint64_t> c = n.counters();
    return std::pair(c.at(DcqcnPlus::kIncreases), c.at(DcqcnPlus::kHeldIncreases));
  };
  n.transport.on_pause(0, 3, true, us(55));
  CHECK(counted() == std::pair(0ul, 0ul));
  n.transport.on_pause(0, 3, false, us(110));
  CHECK(counted() == std::pair(0ul, 1ul));
  n.transport.on_pause(0, 3, true, us(120));
  CHECK(counted() == std::pair(1ul, 0ul));
}

void test_change_of_setting() {
  Bench b;
  b.cnp(0, 10);
  b.run(10);
  PlusSetting next = b.s;
  next.timer = us(500);
  next.min_share = 0.6;
  b.q.change_setting(b.s, next, us(10));
  b.s = next;
  CHECK_EQ(b.q.rate, gbps(60));    // the new least rate
  CHECK_EQ(b.rate(55), gbps(80));  // the armed timer runs on
  b.cnp(56, 10);
  CHECK_EQ(b.q.timer, us(500));
  PlusReactionPoint untouched;
  untouched.start(gbps(100));
  untouched.change_setting(b.s, next, us(10));
  CHECK_EQ(untouched.rate, gbps(100));
}

// ---- the list, in the NIC of host 7 ----

//   t     event                                                     looks
//   0     flow 0 is marked: alone in the list                        1, 2, ...
//   1     CNP to 0; the next not before 46
//   2.2   0 is marked again; flow 1 is marked at 2.5: looks          3 (0), 4 (1), 5 (0), ...
//   4     CNP to 1
//  47     CNP to 0: the first of its turns, 3 + 2 k, from 46 on
// 103     0 leaves, 100 us after its last mark: turns 49 + 2 k; 1 takes its place
// 104     1 leaves
void test_list() {
  Notifier n(100);
  n.mark(0, us(0));
  CHECK_EQ(n.transport.next_tick(7), us(1));
  n.mark(0, us(2.2));
  CHECK_EQ(n.transport.next_tick(7), us(46));
  n.mark(1, us(2.5));
  CHECK_EQ(n.transport.next_tick(7), us(4));
  n.run(us(5));
  CHECK_EQ(n.transport.next_tick(7), us(47));
  n.run(us(50));
  CHECK((n.cnps == std::vector<Sent>{{us(1), 0}, {us(4), 1}, {us(47), 0}}));
  CHECK_EQ(n.transport.next_tick(7), us(103));
  n.run(us(103));
  CHECK_EQ(n.transport.next_tick(7), us(104));
  n.run(us(1000));
  CHECK(n.transport.next_tick(7) == kNever);
  CHECK_EQ(n.cnps.size(), 3);
  CHECK_EQ(n.listed(), 2);
  // it starts again, alone
  n.mark(4, us(2000.5));
  CHECK_EQ(n.transport.next_tick(7), us(2001.5));
  CHECK_EQ(n.listed(), 1);
}

// a queue pair leaves the list with its last packet, marked or not, and is not told any more
void test_complete_flows_leave() {
  Notifier n(100'000, {2000});
  for (int src = 0; src < 3; ++src) n.mark(src, us(0.1 * src));
  n.mark(0, us(0.5), false);  // its last packet: 2 moves to the place of 0 and is looked at first
  CHECK_EQ(n.transport.next_tick(7), us(1));
  n.mark(2, us(0.6));
  n.run(us(10));
  CHECK((n.cnps == std::vector<Sent>{{us(1), 1}}));
  n.mark(1, us(20));
  CHECK(n.transport.next_tick(7) == kNever);
  CHECK_EQ(n.listed(), 3);
}

// the period that a CNP tells is the length of the list times delta
void test_period_in_the_cnp() {
  Notifier n(100'000);
  n.transport.schemes().trace(true);
  const auto timer_of = [&n] {
    n.run(us(200'000));
    const Packet& p = n.packets.back();
    Qp& q = *n.transport.find(p.qp);
    n.transport.on_control(q, p, us(200'000));
    const auto trace = n.transport.schemes().take_trace();
    return trace.at(0).second.back().values[4];
  };
  // seven in the list: tau = 7 us is short, so K is 55 us; with delta = 10 us it is 140 us
  for (int src = 0; src < 7; ++src) n.mark(src, us(10 * src));
  CHECK_EQ(timer_of(), us(55));
  Notifier slow(100'000);
  slow.transport.schemes().trace(true);
  slow.set({{"plus_cnp_interval", 10e-6}}, 0);
  for (int src = 0; src < 7; ++src) slow.mark(src, us(10 * src + 1));
  slow.run(us(60'000));
  CHECK_EQ(slow.packets.size(), 7);
  const Packet& last = slow.packets.back();
  slow.transport.on_control(*slow.transport.find(last.qp), last, us(60'000));
  CHECK_EQ(slow.transport.schemes().take_trace().at(0).second.back().values[4], us(140));
}

// every record in its turn, look by look: what the list must give
struct Eager {
  struct Record {
    int src;
    bool marked;
    Time cnp_from, keep_until;
  };
  std::vector<Record> records;
  std::size_t cursor = 0;
  Time last = 0, keep;
  std::vector<Sent> cnps;

  explicit Eager(Time list_time) : keep(list_time) {}
  void look(Time now) {
    Record& r = records[cursor];
    if (r.marked && r.cnp_from <= now) {
      cnps.push_back({now, r.src});
      r.marked = false;
      r.cnp_from = now + us(45);
    } else if (!r.marked && r.keep_until <= now) {
      r = records.back();
      records.pop_back();
      if (cursor >= records.size()) cursor = 0;
      return;
    }
    cursor = cursor + 1 < records.size() ? cursor + 1 : 0;
  }
  void run(Time until) {
    while (!records.empty() && last + us(1) <= until) {
      last += us(1);
      look(last);
    }
  }
  void mark(int src, Time now) {
    run(now);
    for (Record& r : records) {
      if (r.src != src) continue;
      r.marked = true;
      r.keep_until = now + keep;
      return;
    }
    if (records.empty()) {
      last = now;
      cursor = 0;
    }
    records.push_back({src, true, 0, now + keep});
  }
};

void test_lazy_list_against_eager() {
  std::set<std::size_t> counts;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const double list_us = seed % 3 == 0 ? 60 : seed % 3 == 1 ? 300 : 5000;
    Notifier lazy(list_us);
    Eager eager(us(list_us));
    Time now = 0;
    for (std::uint64_t i = 0; i < 300; ++i) {
      const std::uint64_t draw = mix64(seed * 1000 + i);
      now += static_cast<Time>(draw % (seed % 2 ? 3'000'000 : 60'000'000)) + 1;
      const int src = static_cast<int>((draw >> 40) % (1 + seed % 7));
      lazy.mark(src, now);
      eager.mark(src, now);
    }
    lazy.run(now + us(10'000));
    eager.run(now + us(10'000));
    CHECK(lazy.cnps == eager.cnps);
    CHECK(lazy.transport.next_tick(7) == kNever);
    counts.insert(lazy.cnps.size());
  }
  CHECK(counts.size() > 20);
}

}  // namespace
}  // namespace dcqcn

int main(int argc, char** argv) {
  using namespace dcqcn;
  test_table();
  if (check::tables_only(argc, argv)) return check::result("dcqcn_plus --tables");
  test_steps_of_a_slow_queue_pair();
  test_timers();
  test_cut_and_alpha();
  test_pause();
  test_a_pause_comes_before_the_timers();
  test_change_of_setting();
  test_list();
  test_complete_flows_leave();
  test_period_in_the_cnp();
  test_lazy_list_against_eager();
  return check::result("dcqcn_plus");
}
