// DCQCN's rules from the first packet to the last cut, through the hooks that the engines call: one
// long table for each mode and one for the notification point. Times are in us, rates in Gb/s,
// alpha of 1024. reaction_point_test turns each knob alone; tools/branches.py counts
// branches.
#include <memory>

#include "model/schemes/dcqcn.hpp"
#include "tests/check.hpp"
#include "tests/hook_bench.hpp"

namespace dcqcn {
namespace {

// packets of 1000 B; alpha halves every 40 us; cuts are due every 10
NicSetting plain() {
  NicSetting s = plain_increases();
  s.byte_reset = 3000;
  s.reduce_period = us(10);
  s.alpha_period = us(40);
  s.initial_alpha = 512;
  s.g = 512;
  s.decay = std::make_shared<DecayTable>(0.5);
  return s;
}

SchemeSpec mode(const char* name) {
  SchemeSpec spec = spec_of(Dcqcn::kName);
  spec.options = {{"mode", name}};
  return spec;
}

struct Bench : HookBench<Dcqcn> {
  Bench(const NicSetting& s, const char* name) : HookBench(s, mode(name)) { start(0); }
  void send(double t, int packets) {
    NoFields none;
    for (int i = 0; i < packets; ++i) scheme.on_send(sender, {1000, false, false}, none, at(t));
  }
  void cnp(double t) { scheme.on_cnp(sender, {}, at(t)); }
  template <class Change>
  void change(double t, Change&& f) {
    const NicSetting before = setting;
    f(setting);
    scheme.change_setting(sender, before, at(t));
  }
  // timers run as before a packet, which has no bytes
  void expect(double t, Rate rate, Rate target, unsigned times, unsigned bytes) {
    NoFields none;
    scheme.on_send(sender, {0, false, false}, none, at(t));
    CHECK_EQ(this->rate(), rate);
    CHECK_EQ(sender.target, target);
    CHECK_EQ(sender.time_stage, times);
    CHECK_EQ(sender.byte_stage, bytes);
  }
  Rate pacing() const { return scheme.pace(sender, setting).pacing; }
};

//    t   event                                          R             T             stages alpha
//    0   5 packets before the first CNP count nothing   100           100           0 0
//    0   first CNP                                      100           100           0 0    512
//   10   cut: T was not raised, 1 - 512/2048            75            100           0 0
//   15   3000 B: fast recovery, 0 < F                   87.5          100           0 1
//   18   CNP: the cut waits for 20
//   19   CNP: one cut answers both
//   20   cut after an increase by bytes: T := R         65.625        87.5          0 0
//        alpha: 768 at 40 (the CNP of 18), 384 at 80, 192 at 120
//  120   timer, fast recovery                           76.5625       87.5          1 0
//  130   3000 B: one stage is F: additive               82.53125      88.5          1 1
//  131   3000 B: neither is beyond F                    86.015625     89.5          1 2
//  132   3000 B: the timer's stage is not beyond F      88.2578125    90.5          1 3
//  220   timer, the same                                89.87890625   91.5          2 3
//  320   timer, both beyond F: hyper                    92.689453125  95.5          3 3    6
//  330   setting: G 3/4, highest rate 90                90            90            3 3
//        alpha: 4.5 at 360, 3.375 at 400
//  420   timer, nothing to increase: counted            90            90            4 3
//  430   CNP; the grid of cuts is at 440
//  440   alpha first, 3/4 x 3.375 + 256 = 258.53125;
//        cut after an increase by time: T := R          78.638763427  90            0 0
//  445   setting: highest 80, but lowest 85, which wins 85            85            0 0
//  538   CNP; the cut waits for 540
//  540   timer with a cut ahead, at the highest rate,
//        then the cut, held by the lowest rate          85            85            0 0    145.42
//  541   CNP; the cut waits for 550
//  545   setting: no bounds, no byte counter, timer 20  85            85            0 0
//  550   cut: 1 - 145.423828125/2048                    78.96434307   85            0 0
//  570   timer (alone: its stage counts twice)          81.982171535  85            1 0
//  571   setting: a cut always clamps T; not after time
//  572   CNP, and the cut at 580; alpha 365.06787...    67.368374254  81.982171535  0 0
//  600   timer                                          74.675272895  81.982171535  1 0
//  601   setting: clamps only after an increase by bytes
//  602   CNP, and the cut at 610; alpha 529.80090...    55.3573886    81.982171535  0 0
void test_nic_table() {
  Bench b(plain(), "nic");
  b.notes.tracing = true;
  b.send(0, 5);
  CHECK(b.scheme.resting(b.sender));
  b.cnp(0);
  CHECK(!b.scheme.resting(b.sender));
  b.expect(9.999, gbps(100), gbps(100), 0, 0);
  b.expect(10, gbps(75), gbps(100), 0, 0);
  b.send(15, 3);
  b.expect(15, gbps(87.5), gbps(100), 0, 1);
  b.cnp(18);
  b.cnp(19);
  b.expect(20, gbps(65.625), gbps(87.5), 0, 0);
  b.expect(119.999, gbps(65.625), gbps(87.5), 0, 0);
  b.expect(120, gbps(76.5625), gbps(87.5), 1, 0);
  b.send(130, 3);
  b.expect(130, gbps(82.53125), gbps(88.5), 1, 1);
  b.send(131, 3);
  b.expect(131, gbps(86.015625), gbps(89.5), 1, 2);
  b.send(132, 3);
  b.expect(132, gbps(88.2578125), gbps(90.5), 1, 3);
  b.expect(220, gbps(89.87890625), gbps(91.5), 2, 3);
  b.expect(320, gbps(92.689453125), gbps(95.5), 3, 3);
  CHECK_EQ(b.pacing(), gbps(92.689453125));
  b.change(330, [](NicSetting& s) {
    s.g = 768;
    s.decay = std::make_shared<DecayTable>(0.75);
    s.max_rate = gbps(90);
  });
  CHECK_EQ(b.pacing(), gbps(100));  // a limiter at its highest rate lets go
  b.expect(425, gbps(90), gbps(90), 4, 3);
  b.cnp(430);
  b.expect(440, 78'638'763'427, gbps(90), 0, 0);
  CHECK_EQ(b.sender.alpha(b.setting), 258.53125);
  CHECK_EQ(b.pacing(), b.rate());
  b.change(445, [](NicSetting& s) { s.max_rate = gbps(80), s.min_rate = gbps(85); });
  b.expect(539.999, gbps(85), gbps(85), 0, 0);
  b.cnp(538);
  b.expect(540, gbps(85), gbps(85), 0, 0);
  CHECK_EQ(b.sender.alpha(b.setting), 145.423828125);
  b.cnp(541);
  b.change(545, [](NicSetting& s) {
    s.max_rate = 0, s.min_rate = gbps(1), s.byte_reset = 0, s.time_reset = us(20);
  });
  b.expect(550, 78'964'343'070, gbps(85), 0, 0);
  b.send(560, 9);
  b.expect(570, 81'982'171'535, gbps(85), 1, 0);
  b.change(571, [](NicSetting& s) { s.clamp_target = true, s.clamp_target_after_time = false; });
  b.cnp(572);
  b.expect(580, 67'368'374'254, 81'982'171'535, 0, 0);
  b.expect(600, 74'675'272'895, 81'982'171'535, 1, 0);
  b.change(601, [](NicSetting& s) { s.clamp_target = false; });
  b.cnp(602);
  b.expect(610, 55'357'388'600, 81'982'171'535, 0, 0);
  CHECK_EQ(b.notes.counters[Dcqcn::kCuts], 7);
  CHECK_EQ(b.notes.counters[Dcqcn::kIncreases], 9);  // those at full rate are only counted
  // what --trace tells of the cut at 440: a CNP at 430, then this
  std::vector<SchemeEvent> seen;
  for (const SchemeEvent& e : b.notes.events) {
    if (e.when >= us(430) && e.when <= us(440)) seen.push_back(e);
  }
  CHECK_EQ(seen.size(), 2);
  CHECK_EQ(seen[0].what, Dcqcn::kCnp);
  CHECK_EQ(seen[1].what, Dcqcn::kCut);
  CHECK_EQ(seen[1].values[0], 78'638'763'427);
  CHECK_EQ(seen[1].values[2], 258.53125);
}

// Alpha halves every 10 us, increases come every 25 us; what --trace tells of alpha at each.
//    t   event                                          alpha
//    0   first CNP                                      512
//   10   cut; alpha has just fallen                     256
//   35   increase: two ticks since, at 20 and 30        64
//   60   increase: at 40, 50 and 60                     8
//   65   setting: alpha falls to 1/4 from now on; the increase at 85 is after it
//   85   increase: at 70 and 80                         1/2
void test_alpha_of_the_trace() {
  NicSetting s = plain();
  s.byte_reset = 0;
  s.reduce_period = us(10);
  s.alpha_period = us(10);
  s.time_reset = us(25);
  s.g = 512;
  s.decay = std::make_shared<DecayTable>(0.5);
  Bench b(s, "nic");
  b.notes.tracing = true;
  b.cnp(0);
  // everything is late: the setting's change runs what came before it
  b.change(65, [](NicSetting& next) {
    next.g = 256;
    next.decay = std::make_shared<DecayTable>(0.25);
  });
  b.send(85, 1);
  const double expected[] = {512, 256, 64, 8, 0.5};
  CHECK_EQ(b.notes.events.size(), 5);
  for (std::size_t i = 0; i < 5; ++i) CHECK_EQ(b.notes.events.at(i).values[2], expected[i]);
  // looking changed nothing
  CHECK_EQ(b.sender.alpha(b.setting), 8);
}

// F = 2, alpha halves every 80 us, the first CNP sets the rate to 80.
//    t   event                                          R             T             stage  alpha
//    0   setting before any CNP: nothing to bound       100           100           0
//    1   first CNP: R = T = 80, then 1 - 512/2048       60            80            0      768
//    9   no cuts by a clock                             60            80            0
//   12   CNP: 1 - 768/2048                              37.5          60            0      896
//   50   2 packets: no byte counter                     37.5          60            0
//  112   timer: fast recovery, 0 < F                    48.75         60            1
//  212   timer: fast recovery, 1 < F                    54.375        60            2
//  312   timer: stage 2 is F: additive                  57.6875       61            3
//  412   timer: stage 3: hyper, 1 x 4                   61.34375      65            4
//  512   timer: stage 4: hyper, 2 x 4                   67.171875     73            5
//  513   setting: highest rate 70                       67.171875     70            5
//  612   timer: T stays at its bound                    68.5859375    70            6
//        alpha: 448, 224, 112, 56, 28, 14 and 7 at 92, 172, ..., 572
//  613   CNP: 1 - 7/2048; alpha 3.5 + 512               68.351512908  68.5859375    0      515.5
//  713   timer: fast recovery                           68.468725204  68.5859375    1
void test_paper_table() {
  NicSetting s = plain();
  s.byte_reset = 0;
  s.threshold = 2;
  s.alpha_period = us(80);
  s.first_cnp_rate = gbps(80);
  Bench b(s, "paper");
  b.notes.tracing = true;
  b.change(0, [](NicSetting&) {});
  b.expect(0, gbps(100), gbps(100), 0, 0);
  b.cnp(1);
  b.expect(1, gbps(60), gbps(80), 0, 0);
  CHECK_EQ(b.sender.alpha(b.setting), 768);
  b.expect(11.999, gbps(60), gbps(80), 0, 0);
  b.cnp(12);
  b.expect(12, gbps(37.5), gbps(60), 0, 0);
  CHECK_EQ(b.sender.alpha(b.setting), 896);
  b.send(50, 2);
  b.expect(111.999, gbps(37.5), gbps(60), 0, 0);
  b.expect(112, gbps(48.75), gbps(60), 1, 0);
  b.expect(212, gbps(54.375), gbps(60), 2, 0);
  b.expect(312, gbps(57.6875), gbps(61), 3, 0);
  b.expect(412, gbps(61.34375), gbps(65), 4, 0);
  b.expect(512, gbps(67.171875), gbps(73), 5, 0);
  b.change(513, [](NicSetting& next) { next.max_rate = gbps(70); });
  b.expect(513, gbps(67.171875), gbps(70), 5, 0);
  b.expect(612, gbps(68.5859375), gbps(70), 6, 0);
  b.cnp(613);
  b.expect(613, 68'351'512'908, gbps(68.5859375), 0, 0);
  CHECK_EQ(b.sender.alpha(b.setting), 515.5);
  b.expect(713, 68'468'725'204, gbps(68.5859375), 1, 0);
  CHECK_EQ(b.notes.counters[Dcqcn::kCuts], 3);
  CHECK_EQ(b.notes.counters[Dcqcn::kIncreases], 7);
  CHECK_EQ(b.notes.events.size(), 3 + 3 + 7);  // a CNP is told of beside its cut
  CHECK_EQ(b.notes.events[0].what, Dcqcn::kCnp);
  CHECK_EQ(b.notes.events[1].what, Dcqcn::kCut);
  CHECK_EQ(b.notes.events[4].what, Dcqcn::kIncrease);
}

// D-static(200) at 10 Gb/s (ICNP'18, V-D): K = 2 max(200 us, 8000 bit / 50 Mb/s = 160 us) = 400 us,
// R_AI = 10 Gb/s / 2000 = 5 Mb/s; DCQCN as published for the rest: g = 1/256 every 55 us, F = 5.
// In Mb/s; alpha loses 1/256 a tick (3 ticks to 200, 3 more to 400, 60 to 3700) and a CNP adds 4.
//     t   event                                        R              T             alpha
//     0   first CNP: 1 - 1023/2048                     5004.882812    10000         1023
//   200   CNP: 1 - 1011.0788/2048                      2534.067751    5004.882812   1011.109
//   400   CNP: 1 - 999.3... /2048                      1297.588285    2534.067751   999.403
//   800 to 2400, every 400: fast recovery, halving the way: 1915.828018, 2224.947885,
//         2379.507818, 2456.787785, 2495.427768
//  2800   stage 5 = F: additive                        2517.24776     2539.067751
//  3200   additive                                     2530.657756    2544.067751
//  3600   additive                                     2539.862754    2549.067751
//  3601   a packet: 10 MB are far
//  3700   CNP                                          1559.845409    2539.862754   791.143
//  4100   fast recovery                                2049.854082    2539.862754
void test_static_table() {
  NicSetting s;
  s.time_reset = us(400);
  s.byte_reset = 10'000'000;
  s.threshold = 5;
  s.ai_rate = 5'000'000;
  s.hai_rate = 100'000'000;
  s.g = 1020;
  s.decay = std::make_shared<DecayTable>(1020 / 1024.0);
  s.alpha_period = us(55);
  s.initial_alpha = 1023;
  s.min_rate = 1'000'000;
  Bench b(s, "paper");
  b.connection.line = gbps(10);
  b.start(0);
  b.cnp(0);
  b.expect(0, 5'004'882'812, gbps(10), 0, 0);
  b.cnp(200);
  b.expect(200, 2'534'067'751, 5'004'882'812, 0, 0);
  b.cnp(400);
  b.expect(799.999, 1'297'588'285, 2'534'067'751, 0, 0);
  CHECK_BETWEEN(b.sender.alpha(b.setting), 999.4027, 999.4028);
  unsigned stage = 0;
  for (const Rate rate :
       std::initializer_list<Rate>{1'915'828'018, 2'224'947'885, 2'379'507'818, 2'456'787'785}) {
    ++stage;
    b.expect(400 + 400.0 * stage, rate, 2'534'067'751, stage, 0);
  }
  b.expect(2400, 2'495'427'768, 2'534'067'751, 5, 0);
  b.expect(2800, 2'517'247'760, 2'539'067'751, 6, 0);
  b.expect(3200, 2'530'657'756, 2'544'067'751, 7, 0);
  b.send(3601, 1);
  b.expect(3601, 2'539'862'754, 2'549'067'751, 8, 0);
  b.cnp(3700);
  b.expect(3700, 1'559'845'409, 2'539'862'754, 0, 0);
  CHECK_BETWEEN(b.sender.alpha(b.setting), 791.1430, 791.1431);
  b.expect(4100, 2'049'854'082, 2'539'862'754, 1, 0);
}

// Two flows of one NIC, CNP gap 4, and 6 between any two CNPs of the NIC where its port has a gap:
//   t            0    1    3.9   4    5.5   6    8    10   12   13    16   18
//   of flow      a    b    a     a    b     b    a    a    a    b     a    b
//   port gap 0   CNP  CNP  -     CNP  CNP   -    CNP  -    CNP  CNP   CNP  CNP
//   port gap 6   CNP  -    -     -    -     CNP  -    -    CNP  -     -    CNP
//   scope port   CNP  -    -     CNP  -     -    CNP  -    CNP  -     CNP  -
void test_notification_table() {
  const double times[] = {0, 1, 3.9, 4, 5.5, 6, 8, 10, 12, 13, 16, 18};
  const std::string flows = "abaabbaaabab";
  const std::pair<Transport, std::string> rows[] = {{[] { return Transport{}; }(), "xx.xx.x.xxxx"},
                                                    {[] {
                                                       Transport t;
                                                       t.cnp_port_gap = us(6);
                                                       return t;
                                                     }(),
                                                     "x....x..x..x"},
                                                    {[] {
                                                       Transport t;
                                                       t.cnp_scope_port = true;
                                                       return t;
                                                     }(),
                                                     "x..x..x.x.x."}};
  for (const auto& [transport, expected] : rows) {
    NicSetting s = plain();
    s.cnp_gap = us(4);
    HookBench<Dcqcn> nic(s, mode("nic"), transport);
    Dcqcn::Receiver flow[2];
    NoFields none;
    std::string sent;
    for (std::size_t i = 0; i < flows.size(); ++i) {
      Dcqcn::Receiver& r = flow[flows[i] - 'a'];
      sent += nic.scheme.on_mark(r, {1000, true, true, false}, none, nic.at(times[i])) ? 'x' : '.';
    }
    if (!CHECK(sent == expected))
      std::printf("    %s, expected %s\n", sent.c_str(), expected.c_str());
  }
}

}  // namespace
}  // namespace dcqcn

int main() {
  using namespace dcqcn;
  test_nic_table();
  test_paper_table();
  test_alpha_of_the_trace();
  test_static_table();
  test_notification_table();
  return check::result("dcqcn_table");
}
