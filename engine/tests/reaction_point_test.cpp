// The reaction point against tables worked out by hand. Times are in us, rates in Gb/s; every knob
// of the NIC changes a number at least once (np_min_time_between_cnps: notification_point_test).
// Alpha is of 1024. The numbers are chosen so that they can be checked on paper.
#include "tests/check.hpp"
#include "tests/reaction_point_bench.hpp"

namespace dcqcn {
namespace {

// The first 230 us of the table below: CNPs at 0, 12 and 225.
Bench second_round(const NicSetting& s) {
  Bench b(s);
  b.cnp(0);
  b.cnp(12);
  b.cnp(225);
  return b;
}

//   t    event                                                     R              T
//   0    first CNP: no cut yet                                     100            100
//  10    cut: T was not raised since, so it stays                  75             100
//  12    CNP; the cut waits for the next tick, at 20
//  20    cut                                                       56.25          100
// 120    increase, stage 0 < F = 1: fast recovery                  78.125         100
// 220    stage 1 = F: additive, T = 101, capped at the line        89.0625        100
// 225    CNP; the grid of cuts is 10, 20, ..., so the cut is at 230
// 230    cut: an increase happened, so T := R first                66.796875      89.0625
// 330    fast recovery                                             77.9296875     89.0625
// 430    additive, T += 1                                          83.99609375    90.0625
// 530    hyper, T += 4                                             89.029296875   94.0625
// 630    hyper; a half bit/s is rounded up                         93.545898438   98.0625
// 730    hyper, T = 102.0625, capped at the line                   96.772949219   100
void test_nic_table() {
  Bench b(plain());
  CHECK_EQ(b.rate(0), gbps(100));
  b.cnp(0);
  CHECK_EQ(b.rate(9.999), gbps(100));
  CHECK_EQ(b.rate(10), gbps(75));
  CHECK_EQ(b.target(10), gbps(100));
  b.cnp(12);
  CHECK_EQ(b.rate(19.999), gbps(75));
  CHECK_EQ(b.rate(20), gbps(56.25));
  CHECK_EQ(b.target(20), gbps(100));
  CHECK_EQ(b.rate(119.999), gbps(56.25));
  CHECK_EQ(b.rate(120), gbps(78.125));
  CHECK_EQ(b.rate(220), gbps(89.0625));
  CHECK_EQ(b.target(220), gbps(100));
  b.cnp(225);
  CHECK_EQ(b.rate(229.999), gbps(89.0625));
  CHECK_EQ(b.rate(230), 66'796'875'000);
  CHECK_EQ(b.target(230), gbps(89.0625));
  CHECK_EQ(b.rate(330), 77'929'687'500);
  CHECK_EQ(b.rate(430), 83'996'093'750);
  CHECK_EQ(b.target(430), gbps(90.0625));
  CHECK_EQ(b.rate(530), 89'029'296'875);
  CHECK_EQ(b.target(530), gbps(94.0625));
  CHECK_EQ(b.rate(630), 93'545'898'438);
  CHECK_EQ(b.rate(730), 96'772'949'219);
  CHECK_EQ(b.target(730), gbps(100));
}

// The same table with one knob changed, up to the first number that differs.
void test_each_increase_knob() {
  // clamp_tgt_rate: T := R at every cut, so at 20 the target is 75
  Bench clamp = second_round(with([](NicSetting& s) { s.clamp_target = true; }));
  Bench clamp_early(with([](NicSetting& s) { s.clamp_target = true; }));
  clamp_early.cnp(0);
  clamp_early.cnp(12);
  CHECK_EQ(clamp_early.target(20), gbps(75));
  CHECK(clamp.target(230) < gbps(89.0625));

  // clamp_tgt_rate_ati = 0: increases by the timer do not count, so at 230 T stays 100
  Bench ati = second_round(with([](NicSetting& s) { s.clamp_target_after_time = false; }));
  CHECK_EQ(ati.target(230), gbps(100));
  CHECK_EQ(ati.rate(230), 66'796'875'000);

  // time_reset = 50: the first increase comes at 70, the second at 120
  Bench timer(with([](NicSetting& s) { s.time_reset = us(50); }));
  timer.cnp(0);
  timer.cnp(12);
  CHECK_EQ(timer.rate(69.999), gbps(56.25));
  CHECK_EQ(timer.rate(70), gbps(78.125));
  CHECK_EQ(timer.rate(120), gbps(89.0625));

  // threshold F = 2: 430 is still fast recovery, R = (77.9296875 + 89.0625) / 2
  Bench f = second_round(with([](NicSetting& s) { s.threshold = 2; }));
  CHECK_EQ(f.target(430), gbps(89.0625));
  CHECK_EQ(f.rate(430), 83'496'093'750);
  CHECK_EQ(f.target(530), gbps(90.0625));  // stage 2 = F: additive, one event later

  // threshold 0: already the first increase is additive
  Bench f0 = second_round(with([](NicSetting& s) { s.threshold = 0; }));
  CHECK_EQ(f0.target(330), gbps(90.0625));
  CHECK_EQ(f0.target(430), gbps(94.0625));

  // ai = 2, hai = 8
  Bench ai = second_round(with([](NicSetting& s) { s.ai_rate = gbps(2); }));
  CHECK_EQ(ai.target(430), gbps(91.0625));
  Bench hai = second_round(with([](NicSetting& s) { s.hai_rate = gbps(8); }));
  CHECK_EQ(hai.target(430), gbps(90.0625));
  CHECK_EQ(hai.target(530), gbps(98.0625));

  // max_rate = 80: the first CNP limits R and T to it, a cut makes 60; back at 80 the limiter lets
  // go and packets are paced at line rate
  Bench cap(with([](NicSetting& s) { s.max_rate = gbps(80); }));
  CHECK_EQ(cap.rp.pacing_rate(cap.s), gbps(100));
  cap.cnp(0);
  CHECK_EQ(cap.rate(10), gbps(60));
  CHECK_EQ(cap.target(10), gbps(80));
  CHECK_EQ(cap.rp.pacing_rate(cap.s), gbps(60));
  CHECK_EQ(cap.rate(110), gbps(70));
  CHECK_EQ(cap.rate(210), gbps(75));
  CHECK_EQ(cap.target(210), gbps(80));
  CHECK_EQ(cap.rate(100'000), gbps(80));
  CHECK_EQ(cap.rp.pacing_rate(cap.s), gbps(100));
}

void test_each_decrease_knob() {
  // gd = 12: 1 - 512/4096 = 7/8; gd = 10: 1/2, which is also the floor of a cut
  Bench gd12(with([](NicSetting& s) { s.gd = 4096; }));
  gd12.cnp(0);
  CHECK_EQ(gd12.rate(10), gbps(87.5));
  Bench gd10(with([](NicSetting& s) { s.gd = 1024; }));
  gd10.cnp(0);
  CHECK_EQ(gd10.rate(10), gbps(50));

  // min_dec_fac = 90 %: the floor of one cut; 100 %: never a cut
  Bench floor(with([](NicSetting& s) { s.min_dec_fac = 0.9; }));
  floor.cnp(0);
  CHECK_EQ(floor.rate(10), gbps(90));
  Bench never(with([](NicSetting& s) { s.min_dec_fac = 1.0; }));
  never.cnp(0);
  CHECK_EQ(never.rate(10), gbps(100));

  // min_rate = 60: the second cut ends there instead of at 56.25
  Bench low(with([](NicSetting& s) { s.min_rate = gbps(60); }));
  low.cnp(0);
  low.cnp(12);
  CHECK_EQ(low.rate(10), gbps(75));
  CHECK_EQ(low.rate(20), gbps(60));

  // rate_to_set_on_first_cnp = 40: R = T = 40 at once, 30 after the cut; only the first CNP
  Bench first(with([](NicSetting& s) { s.first_cnp_rate = gbps(40); }));
  first.cnp(3);
  CHECK_EQ(first.rate(3), gbps(40));
  CHECK_EQ(first.target(3), gbps(40));
  CHECK_EQ(first.rate(13), gbps(30));
  first.cnp(14);
  CHECK_EQ(first.rate(14), gbps(30));

  // rate_reduce_monitor_period = 5: cuts at 5 and, after the CNP at 12, at 15
  Bench period(with([](NicSetting& s) { s.reduce_period = us(5); }));
  period.cnp(0);
  CHECK_EQ(period.rate(5), gbps(75));
  period.cnp(12);
  CHECK_EQ(period.rate(14.999), gbps(75));
  CHECK_EQ(period.rate(15), gbps(56.25));

  // two CNPs within a period make one cut, and no CNP makes none
  Bench twice(plain());
  twice.cnp(0);
  twice.cnp(1);
  twice.cnp(9);
  CHECK_EQ(twice.rate(99), gbps(75));
}

// alpha_period = 4, G = 512 (one half), alpha0 = 512; a cut every 10.
//   0  first CNP: alpha 512            4  256     8  128
//  10  cut: 1 - 128/2048 = 15/16       93.75
//  11  CNP                            12  128/2 + 512 = 576    16  288    20  144
//  20  the tick of alpha comes before the cut: 1 - 144/2048 = 119/128      87.158203125
void test_alpha_knobs() {
  const NicSetting base = with_g(with([](NicSetting& s) { s.alpha_period = us(4); }), 512);
  Bench b(base);
  b.cnp(0);
  CHECK_EQ(b.rate(10), gbps(93.75));
  b.cnp(11);
  CHECK_EQ(b.rate(20), 87'158'203'125);
  CHECK_EQ(b.alpha(20), 144);

  // dce_tcp_g = 768 (three quarters): 512, 384, 288; 1 - 288/2048 = 0.859375
  Bench g(with_g(base, 768));
  g.cnp(0);
  CHECK_EQ(g.rate(10), 85'937'500'000);
  // G = 0: without a CNP alpha is gone after one tick, with one it is full (1023 of 1024)
  Bench g0(with_g(base, 0));
  g0.cnp(0);
  CHECK_EQ(g0.rate(10), gbps(100));
  g0.cnp(11);
  CHECK_EQ(g0.alpha(12), 1023);

  // dce_tcp_rtt = 8: one tick before the cut; 1 - 256/2048 = 7/8
  Bench rtt(with([&](NicSetting& s) {
    s = base;
    s.alpha_period = us(8);
  }));
  rtt.cnp(0);
  CHECK_EQ(rtt.rate(10), gbps(87.5));

  // initial_alpha_value = 1023: 512 was 3/4 of the rate, this is 1025/2048
  Bench first(with([](NicSetting& s) { s.initial_alpha = 1023; }));
  first.cnp(0);
  CHECK_EQ(first.rate(10), 50'048'828'125);

  // the defaults: 1023 * (1019/1024)^4 = 1003.171..., and R = 100 * (1 - alpha/2048)
  Bench usual{NicSetting{}};
  usual.cnp(10);
  const double a = 1019.0 / 1024.0;
  CHECK_BETWEEN(static_cast<double>(usual.rate(14)), 1e11 * (1 - 1023 * a * a * a * a / 2048) - 2,
                1e11 * (1 - 1023 * a * a * a * a / 2048) + 2);
  CHECK_EQ(usual.rate(14) / 1'000'000, 51'017);
}

// byte_reset = 2500 B, packets of 1000 B, F = 1; the timer is out of the way.
// cut at 10: R 75, T 100. Third packet: 3000 B, one event, 500 B stay.
void test_byte_counter() {
  const NicSetting base = with([](NicSetting& s) {
    s.byte_reset = 2500;
    s.time_reset = us(1000);
  });
  Bench b(base);
  b.cnp(0);
  b.sent(5, 9);  // before the first cut nothing is counted
  CHECK_EQ(b.rate(10), gbps(75));
  b.sent(11, 2);
  CHECK_EQ(b.rate(11), gbps(75));
  b.sent(11, 1);
  CHECK_EQ(b.rate(11), gbps(87.5));
  CHECK_EQ(b.rp.byte_count, 500);
  b.cnp(12);  // an increase by bytes counts even with ati = 0
  CHECK_EQ(b.target(20), gbps(87.5));
  CHECK_EQ(b.rate(20), 65'625'000'000);
  CHECK_EQ(b.rp.byte_count, 0);  // the cut starts the count anew
  CHECK_EQ(b.rp.byte_stage, 0);

  Bench no_ati(with([&](NicSetting& s) {
    s = base;
    s.clamp_target_after_time = false;
  }));
  no_ati.cnp(0);
  no_ati.sent(11, 3);
  no_ati.cnp(12);
  CHECK_EQ(no_ati.target(20), gbps(87.5));

  // From 65.625 / 87.5: event 1 fast recovery 76.5625; event 2: bytes 1, timer 0: additive, T 88.5,
  // R 82.53125; event 3: the smaller stage is still 0, so additive again: T 89.5
  b.sent(21, 3);
  CHECK_EQ(b.rate(21), 76'562'500'000);
  b.sent(21, 2);
  CHECK_EQ(b.target(21), gbps(88.5));
  CHECK_EQ(b.rate(21), 82'531'250'000);
  b.sent(21, 3);
  CHECK_EQ(b.target(21), gbps(89.5));
  // the timer at 1020 and 2020 finds stages (0, 3) and (1, 3): min <= F, additive
  CHECK_EQ(b.target(1020), gbps(90.5));
  CHECK_EQ(b.target(2020), gbps(91.5));
  // stages (2, 3): both beyond F, hyper
  CHECK_EQ(b.target(3020), gbps(95.5));

  // a large packet may be worth several events: 3 x 2500 B need 8000 B
  Bench big(base);
  big.cnp(0);
  big.rp.catch_up(big.s, us(10));
  big.rp.on_sent(big.s, 8000);
  CHECK_EQ(big.rp.byte_stage, 3);
  CHECK_EQ(big.rp.byte_count, 500);
}

// DCQCN as published. alpha_period 8, G = 512, alpha0 = 512, F = 2, time_reset 100.
//   0  first CNP cuts at once: 1 - 512/2048           R 75        T 100   alpha 256 + 512 = 768
//   8  alpha 384
//  12  CNP: 1 - 384/2048 = 13/16                      R 60.9375   T 75    alpha 192 + 512 = 704
// 112  stage 0 < F: fast recovery, as at 212          R 67.96875, 71.484375   T 75
// 312  stage 2 = F: additive                          R 73.7421875            T 76
// 412  stage 3, and the byte stage follows: 1 * HAI   R 76.87109375           T 80
// 512  stage 4: T += 2 * HAI                          R 82.435546875          T 88
void test_paper_table() {
  const NicSetting base = with_g(with([](NicSetting& s) {
                                   s.alpha_period = us(8);
                                   s.threshold = 2;
                                 }),
                                 512);
  Bench b(base, RpMode::kPaper);
  b.cnp(0);
  CHECK_EQ(b.rate(0), gbps(75));
  CHECK_EQ(b.target(0), gbps(100));
  CHECK_EQ(b.rp.alpha(b.s), 768);
  b.cnp(12);
  CHECK_EQ(b.rate(12), 60'937'500'000);
  CHECK_EQ(b.target(12), gbps(75));
  CHECK_EQ(b.rp.alpha(b.s), 704);
  CHECK_EQ(b.rate(111.999), 60'937'500'000);
  CHECK_EQ(b.rate(112), 67'968'750'000);
  CHECK_EQ(b.target(212), gbps(75));
  CHECK_EQ(b.rate(212), 71'484'375'000);
  CHECK_EQ(b.target(312), gbps(76));
  CHECK_EQ(b.rate(312), 73'742'187'500);
  CHECK_EQ(b.target(412), gbps(80));
  CHECK_EQ(b.rate(412), 76'871'093'750);
  CHECK_EQ(b.target(512), gbps(88));
  CHECK_EQ(b.rate(512), 82'435'546'875);

  // with a byte counter that never fires the smaller stage stays 0: additive for ever
  Bench slow(with([&](NicSetting& s) {
               s = base;
               s.byte_reset = 1'000'000'000;
             }),
             RpMode::kPaper);
  slow.cnp(0);
  slow.cnp(12);
  CHECK_EQ(slow.target(512), gbps(78));
}

// A changed setting: rates at once, timers when they are armed again.
void test_setting_changes() {
  Bench b(plain());
  b.cnp(0);
  b.cnp(12);  // cuts at 10 and 20; the next increase is armed for 120
  b.change(50, with([](NicSetting& s) { s.time_reset = us(30); }));
  CHECK_EQ(b.rate(119.999), gbps(56.25));
  CHECK_EQ(b.rate(120), gbps(78.125));
  CHECK_EQ(b.rate(150), gbps(89.0625));

  Bench low(plain());
  low.cnp(0);
  low.cnp(12);
  low.change(50, with([](NicSetting& s) { s.min_rate = gbps(60); }));
  CHECK_EQ(low.rate(50), gbps(60));
  Bench high(plain());
  high.cnp(0);
  high.cnp(12);
  high.change(50, with([](NicSetting& s) { s.max_rate = gbps(50); }));
  CHECK_EQ(high.rate(50), gbps(50));
  CHECK_EQ(high.target(50), gbps(50));
  CHECK_EQ(high.rp.pacing_rate(high.s), gbps(100));  // released: it is at its highest rate

  // the grid of cuts: 10, 20, ..., then, changed at 25, still 30, and from there every 7
  Bench grid(plain());
  grid.cnp(0);
  grid.change(25, with([](NicSetting& s) { s.reduce_period = us(7); }));
  grid.cnp(31);
  CHECK_EQ(grid.rate(36.999), gbps(75));
  CHECK_EQ(grid.rate(37), gbps(56.25));

  // at one instant the change comes before the tick: the cut at 10 already uses gd = 12
  Bench tie(plain());
  tie.cnp(0);
  tie.change(10, with([](NicSetting& s) { s.gd = 4096; }));
  CHECK_EQ(tie.rate(10), gbps(87.5));

  // a queue pair that never saw a CNP stays at line rate
  Bench fresh(plain());
  fresh.change(5, with([](NicSetting& s) { s.max_rate = gbps(10); }));
  CHECK_EQ(fresh.rate(1000), gbps(100));
}

// At one instant: increase, then alpha, then cut; a CNP comes after the ticks of its instant.
void test_ties() {
  // increases every 10 from the cut at 10, cuts on the same grid. The CNP at 15 cuts at 20, where
  // fast recovery comes first: 87.5; the stage is then not 0, so T := 87.5, and R = 65.625
  Bench b(with([](NicSetting& s) { s.time_reset = us(10); }));
  b.cnp(0);
  b.cnp(15);
  CHECK_EQ(b.rate(20), 65'625'000'000);
  CHECK_EQ(b.target(20), gbps(87.5));
  // a CNP at the very instant of a tick waits for the next one
  Bench late(plain());
  late.cnp(0);
  late.cnp(20);
  CHECK_EQ(late.rate(29.999), gbps(75));
  CHECK_EQ(late.rate(30), gbps(56.25));
}

}  // namespace
}  // namespace dcqcn

int main() {
  using namespace dcqcn;
  test_nic_table();
  test_each_increase_knob();
  test_each_decrease_knob();
  test_alpha_knobs();
  test_byte_counter();
  test_paper_table();
  test_setting_changes();
  test_ties();
  return check::result("reaction_point");
}
