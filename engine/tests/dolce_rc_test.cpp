// Dolce-RC against a table worked out by hand, its CNPs, its two ECN ratios, and its default arms
// against equation 20. Times are in us, rates in Gb/s.
#include "model/schemes/dolce_rc.hpp"

#include <cmath>

#include "tests/check.hpp"
#include "tests/hook_bench.hpp"

namespace dcqcn {
namespace {

// numbers that can be checked on paper
DolceSetting plain() {
  auto s = plain_increases<DolceSetting>();
  s.cnp_gap = us(10);
  s.qualified = 2;
  s.alpha = {0.5, 1, 0.25, 0};
  s.beta = {1, 0.5, 1.5, 1};
  s.rules = {4, 0.5, 0.5, 0.5};
  s.whole = FixedUcbRules(s.rules);
  return s;
}

SchemeSpec options(const std::vector<std::pair<std::string, std::string>>& pairs) {
  SchemeSpec spec = spec_of(DolceRc::kName);
  spec.options = pairs;
  return spec;
}

struct Bench : HookBench<DolceRc> {
  explicit Bench(const DolceSetting& s = plain(),
                 const std::vector<std::pair<std::string, std::string>>& pairs = {{"ratio",
                                                                                   "count"}},
                 const Transport& transport = {})
      : HookBench(s, options(pairs), transport) {
    start(0);
  }
  void send(double t, int packets) {
    NoFields none;
    for (int i = 0; i < packets; ++i) scheme.on_send(sender, {1000, false, false}, none, at(t));
  }
  void cnp(double t, std::uint8_t marked = 1) { scheme.on_cnp(sender, {marked}, at(t)); }
  DolceRc::Memory& memory() { return nic.connections.of(sender.connection); }
  Rate rate_at(double t) {
    scheme.catch_up(sender, us(t), at(t));
    return rate();
  }
  Rate target() const { return sender.rp.target; }
  // marks of the CNP that answers a marked packet; -1: none
  int mark(double t) {
    DolceRc::CnpFields fields;
    return scheme.on_mark(receiver, {1000, true, true, false}, fields, at(t)) ? fields.marked : -1;
  }
};

// CNP gap 10, so a CNP is qualified 20 after the last that was. Arms (alpha, beta): (0.5, 1),
// (1, 0.5), (0.25, 1.5), (0, 1); DR-UCB: gamma 1/2, xi 1/2, turns at 0..3 of 8.
//    t   event                                             arm  R_T           R_C
//    5   10 packets leave                                       100           100
//   10   first CNP: there is no interval, arm of turn 0    0    100           75
//   15   4 packets
//   20   CNP of 1 mark, 10 after: not qualified            0    75            56.25
//   25   4 packets
//   30   CNP of 3: 1 - 4/8 for arm 0; turn 1               1    28.125        28.125
//   60   CNP, nothing was sent: not judged                 1    14.0625       14.0625
//   65   2 packets
//   70   CNP of 9: 10 marks of 2 packets count as all: 0   2    21.09375      12.3046875
//  170   fast recovery                                          21.09375      16.69921875
//  270   additive                                               22.09375      19.396484375
//  370   hyper: + 4 (2 - 1)                                     26.09375      22.7451171875
//  371   5 packets
//  380   CNP of 1: 1 - 1/5 for arm 2; turn 3               3    22.745117187  22.745117187
//  390   10 packets
//  400   CNP of 1: 1 - 1/10 for arm 3; indices 2.09, 1.12,
//        1.59, 1.46                                        0    22.745117187  17.058837890
void test_table() {
  Bench b;
  const auto expect = [&](int arm, Rate target, Rate rate) {
    CHECK_EQ(b.memory().arm, arm);
    CHECK_EQ(b.target(), target);
    CHECK_EQ(b.rate(), rate);
  };
  b.send(5, 10);
  expect(-1, gbps(100), gbps(100));
  b.cnp(10, 9);
  expect(0, gbps(100), gbps(75));
  b.send(15, 4);
  b.cnp(20, 1);
  expect(0, gbps(75), gbps(56.25));
  b.send(25, 4);
  b.cnp(30, 3);
  expect(1, gbps(28.125), gbps(28.125));
  CHECK_EQ(std::get<DrUcb>(b.memory().learner).mean(0), 0.5);
  b.cnp(60);
  expect(1, gbps(14.0625), gbps(14.0625));
  b.send(65, 2);
  b.cnp(70, 9);
  expect(2, gbps(21.09375), 12'304'687'500);
  CHECK_EQ(std::get<DrUcb>(b.memory().learner).mean(1), 0);
  CHECK_EQ(b.rate_at(169.999), 12'304'687'500);
  CHECK_EQ(b.rate_at(170), 16'699'218'750);
  CHECK_EQ(b.rate_at(270), 19'396'484'375);
  CHECK_EQ(b.target(), gbps(22.09375));
  b.send(371, 5);
  expect(2, gbps(26.09375), 22'745'117'188);  // half a bit/s is rounded up
  b.cnp(380);
  expect(3, 22'745'117'188, 22'745'117'188);
  b.send(390, 10);
  b.cnp(400);
  expect(0, 22'745'117'188, 17'058'837'891);
  // another flow of the two hosts begins at line rate and shares what was learned
  b.start(410);
  expect(0, gbps(100), gbps(100));
  CHECK_EQ(b.notes.counters[DolceRc::kCuts], 7);
  CHECK_EQ(b.notes.counters[DolceRc::kIncreases], 3);
  CHECK_EQ(b.notes.counters[DolceRc::kQualified], 4);
  CHECK_EQ(b.notes.counters[DolceRc::kArm0], 2);
  CHECK_EQ(b.notes.counters[DolceRc::kArm0 + 3], 1);
}

// ratio=slots, memory=qp, arithmetic=fixed, idle reset after 150; arms (0, 0.5), (1, 1), (0.25, 1),
// (0.5, 1). A slot is a microsecond in which data left.
//    t   event                                                    arm  R_T           R_C
//    5   packets at 5, 5.5 and 6.2
//   10   first CNP, arm of turn 0: T falls, R stays               0    50            100
//  110   timer: R is at its top, but T is not: fast recovery           50            75
//  111   packets at 111, 111.9, 112.3, 113.99: three slots
//  115   CNP: 1 - 1/3 for arm 0; turn 1                           1    75            37.5
//  120   CNP, 5 after: not qualified                              1    37.5          18.75
//  131   a packet
//  140   CNP, the second in one slot: all were marked: 0; turn 2  2    18.75         16.40625
//  170   CNP, nothing was sent: not judged                        2    16.40625      14.35546875
//  180   a packet
//  190   CNP, the second in one slot: 0; turn 3                   3    14.35546875   10.766601562
//  290   timer: fast recovery                                          14.35546875   12.561035156
//  300   a packet, 120 after the last one: no reset
//  310   CNP in one slot: 0; indices 2.25, 1.12, .79, .56         0    6.280517578   12.561035156
//  410   timer: fast recovery                                          6.280517578   9.420776367
//  450   a packet, 150 after the last one: no reset
//  601   a packet, 151 after: as new, but the arm stays                100           100
void test_slots_table() {
  DolceSetting s = plain();
  s.idle_reset = us(150);
  s.alpha = {0, 1, 0.25, 0.5};
  s.beta = {0.5, 1, 1, 1};
  Bench b(s, {{"memory", "qp"}, {"arithmetic", "fixed"}});
  b.notes.tracing = true;
  const auto expect = [&](int arm, Rate target, Rate rate) {
    CHECK_EQ(b.memory().arm, arm);
    CHECK_EQ(b.target(), target);
    CHECK_EQ(b.rate(), rate);
  };
  for (const double t : {5.0, 5.5, 6.2}) b.send(t, 1);
  CHECK_EQ(b.memory().sent, 2);
  b.cnp(10);
  expect(0, gbps(50), gbps(100));
  CHECK_EQ(b.rate_at(109.999), gbps(100));
  for (const double t : {111.0, 111.9, 112.3, 113.99}) b.send(t, 1);
  expect(0, gbps(50), gbps(75));
  CHECK_EQ(b.memory().sent, 3);
  b.cnp(115);
  expect(1, gbps(75), gbps(37.5));
  // 256 plays to one, 170/255 of them rewarded: 170.67, rounded either way
  const auto mean = [&](int arm) { return std::get<FixedDrUcb>(b.memory().learner).mean(arm); };
  CHECK(mean(0) == 170 * 256 || mean(0) == 171 * 256);
  b.cnp(120);
  expect(1, gbps(37.5), gbps(18.75));
  b.send(131, 1);
  b.cnp(140);
  expect(2, gbps(18.75), gbps(16.40625));
  CHECK_EQ(mean(1), 0);
  b.cnp(170);
  expect(2, gbps(16.40625), gbps(14.35546875));
  b.send(180, 1);
  b.cnp(190);
  expect(3, gbps(14.35546875), 10'766'601'562);
  CHECK_EQ(b.rate_at(290), 12'561'035'156);
  b.send(300, 1);
  b.cnp(310);
  expect(0, 6'280'517'578, 12'561'035'156);
  CHECK_EQ(b.rate_at(410), 9'420'776'367);
  b.send(450, 1);
  CHECK_EQ(b.rate(), 9'420'776'367);
  b.send(601, 1);
  expect(0, gbps(100), gbps(100));
  CHECK_EQ(b.notes.counters[DolceRc::kCuts], 7);
  CHECK_EQ(b.notes.counters[DolceRc::kIncreases], 3);
  CHECK_EQ(b.notes.counters[DolceRc::kQualified], 4);
  CHECK_EQ(b.notes.counters[DolceRc::kArm0], 2);
  // cuts and increases, and at a judgement what was judged
  CHECK_EQ(b.notes.events.size(), 7 + 3 + 4);
  std::vector<SchemeEvent> judged;
  for (const SchemeEvent& e : b.notes.events) {
    if (e.what == DolceRc::kJudged) judged.push_back(e);
  }
  CHECK_EQ(judged.at(0).when, us(115));
  CHECK_EQ(judged.at(0).values[0], 75e9);
  CHECK_EQ(judged.at(0).values[2], 0);
  CHECK_BETWEEN(judged.at(0).values[3], 2 / 3.0 - 1e-15, 2 / 3.0 + 1e-15);
  CHECK_EQ(judged.at(3).values[2], 3);
  CHECK_EQ(judged.at(3).values[3], 0);
}

// Marks of two flows, a and b, of one NIC; CNP gap 4. What the CNP that answers one tells with
// ratio=count; it is the same CNPs with ratio=slots, which tell nothing.
//   t            0    1    3.9   4    5.5   6    8    10   12   13    16   18
//   of flow      a    b    a     a    b     b    a    a    a    b     a    b
//   port gap 0   1    1    -     2    1     -    1    -    2    2     1    1
//   port gap 6   1    -    -     -    -     3    -    -    5    -     -    2
//   scope port   1    -    -     2    -     -    1    -    2    -     1    -
void test_notification_table() {
  const double times[] = {0, 1, 3.9, 4, 5.5, 6, 8, 10, 12, 13, 16, 18};
  const std::string flows = "abaabbaaabab";
  Transport gap, scope;
  gap.cnp_port_gap = us(6);
  scope.cnp_scope_port = true;
  const std::pair<Transport, std::string> rows[] = {
      {Transport{}, "11.21.1.2211"}, {gap, "1....3..5..2"}, {scope, "1..2..1.2.1."}};
  DolceSetting s = plain();
  s.cnp_gap = us(4);
  for (const auto& [transport, expected] : rows) {
    for (const bool count : {true, false}) {
      Bench b(s, {{"ratio", count ? "count" : "slots"}}, transport);
      DolceRc::Receiver flow[2];
      for (std::size_t i = 0; i < flows.size(); ++i) {
        b.receiver = flow[flows[i] - 'a'];
        const Time quiet = b.scheme.quiet_until(b.receiver, b.at(times[i]));
        const int told = b.mark(times[i]);
        flow[flows[i] - 'a'] = b.receiver;
        CHECK_EQ(told, expected[i] == '.' ? -1 : expected[i] - '0');
        // an engine need not ask while a mark changes nothing
        CHECK(quiet == 0 || !count);
        if (!count) CHECK((quiet <= us(times[i])) == (told > 0));
        const CnpBits bits = b.scheme.bits_of({static_cast<std::uint8_t>(told)});
        if (told > 0) CHECK_EQ(bits.seven, count ? told : 0);
      }
    }
  }
}

// ratio=slots: data in the slots 0, 1 and 3; one CNP since the first: 1 - 1/3
void test_slots() {
  Bench b(plain(), {});
  b.cnp(0);
  for (const double t : {0.9, 0.95, 1.0, 1.5, 3.2}) b.send(t, 7);
  b.cnp(20, 99);
  CHECK_BETWEEN(std::get<DrUcb>(b.memory().learner).mean(0), 1 - 1 / 3.0 - 1e-15,
                1 - 1 / 3.0 + 1e-15);
  // a receiver that need not count hears nothing while no CNP may leave
  CHECK_EQ(b.mark(30), 1);
  CHECK_EQ(b.scheme.quiet_until(b.receiver, b.at(31)), us(40));
  CHECK_EQ(b.mark(39.999), -1);
  CHECK(b.mark(40) > 0);
}

//   t   0   1   2   10   11 (200 marks)   20    30    40
//   CNP 1   -   -   3    -                127   75    1
void test_counted_marks() {
  Bench b;
  CHECK_EQ(b.mark(0), 1);
  CHECK_EQ(b.scheme.quiet_until(b.receiver, b.at(0)), 0);
  CHECK_EQ(b.mark(1), -1);
  CHECK_EQ(b.mark(2), -1);
  CHECK_EQ(b.mark(10), 3);
  for (int i = 0; i < 200; ++i) CHECK_EQ(b.mark(11), -1);
  CHECK_EQ(b.mark(20), 127);  // 7 bits: the rest stays for the next CNP
  CHECK_EQ(b.mark(30), 75);
  CHECK_EQ(b.mark(40), 1);
}

// The memory is the connection's: a later flow goes on with its arm, but starts at line rate.
void test_memory_outlives_flows() {
  for (const bool pair : {true, false}) {
    Bench b(plain(), {{"ratio", "count"}, {"memory", pair ? "pair" : "qp"}});
    b.cnp(10);
    b.send(15, 4);
    b.cnp(30);
    CHECK_EQ(b.memory().arm, 1);
    b.sender = {};
    b.start(40);
    CHECK_EQ(b.rate(), gbps(100));
    CHECK_EQ(b.memory().arm, pair ? 1 : -1);
    b.send(45, 1);
    b.cnp(45);  // too early after 30 for the connection, the first for a queue pair
    CHECK_EQ(b.rate(), gbps(pair ? 50 : 75));
    // another host or priority is another connection
    b.connection.dst = 7;
    b.sender = {};
    b.start(50);
    CHECK_EQ(b.memory().arm, -1);
  }
}

void test_idle_reset() {
  DolceSetting s = plain();
  s.idle_reset = us(50);
  Bench b(s);
  b.send(5, 1);
  b.cnp(10);
  b.send(60, 1);  // 55 after the last packet
  CHECK_EQ(b.rate(), gbps(100));
  b.cnp(70);
  b.send(110, 1);
  CHECK(b.rate() < gbps(100));  // 50 is not more than 50
  Bench never;
  never.cnp(10);
  never.send(90, 1);
  CHECK_EQ(never.rate(), gbps(75));
}

// bounds: the lowest rate, and a target that may not pass the line
void test_bounds() {
  DolceSetting s = plain();
  s.alpha[0] = 1;
  s.beta[0] = 2;
  Bench b(s);
  b.cnp(0);
  CHECK_EQ(b.target(), gbps(100));
  CHECK_EQ(b.rate(), gbps(50));
  for (int i = 1; i < 9; ++i) b.cnp(i);
  CHECK_EQ(b.rate(), gbps(1));
}

// arithmetic=fixed gives the same decisions where the floating one has a clear winner
void test_whole_numbers() {
  DolceSetting s = plain();
  s.rules = {4, 0.9998, 0.015, 0.5001};
  s.whole = FixedUcbRules(s.rules);
  Bench b(s, {{"ratio", "count"}, {"arithmetic", "fixed"}});
  b.send(0, 1);
  b.cnp(0);
  int best = 0;
  for (int i = 1; i <= 400; ++i) {
    b.send(20 * i - 10, 10);
    const bool good = b.memory().arm == 2;
    best += good && i > 200;
    b.cnp(20 * i, good ? 1 : 9);
  }
  CHECK(best > 150);
  CHECK(std::holds_alternative<FixedDrUcb>(b.memory().learner));
}

// ---- equation 20 ----

struct Model {  // in packets of 1000 B and seconds: DCQCN's paper, Dolce-RC's CNP gap
  double gap = 1e-6, step = 40e6 / 8000, bytes = 1e4, timer = 55e-6, alpha_timer = 55e-6;
  double rate;  // C/N

  // alpha where the rate is steady while packets are marked with probability p
  double alpha(double beta, double p) const {
    const double log = std::log1p(-p);
    const double a = -std::expm1(log * gap * rate);
    const double b = p / std::expm1(-log * bytes);
    const double c = std::exp(log * 5 * bytes) * b;
    const double d = p / std::expm1(-log * timer * rate);
    const double e = std::exp(log * 5 * timer * rate) * d;
    return (beta - 1 + gap * step / a * (c + e)) / (a / (gap * rate * (b + d)));
  }
  // p of DCQCN itself: beta = 1, and alpha as its own updates make it
  double marking() const {
    double low = 1e-9, high = 0.5;
    for (int i = 0; i < 200; ++i) {
      const double p = std::sqrt(low * high);
      const double own = -std::expm1(std::log1p(-p) * alpha_timer * rate);
      (alpha(1, p) > own ? low : high) = p;
    }
    return low;
  }
};

// The default arms are alpha of equation 20 at beta = 0.99, 1, 1.05, 1.1 for ten connections on
// 100 Gb/s, to three digits. Figure 3: alpha grows with beta, and changes little with N.
void test_default_arms() {
  const DolceSetting s;
  Model model{.rate = 100e9 / 8000 / 10};
  const double p = model.marking();
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK_BETWEEN(model.alpha(s.beta[i], p), s.alpha[i] - 5e-4, s.alpha[i] + 5e-4);
  }
  double before = 0;
  for (const int n : {1, 2, 5, 10, 20, 50, 100}) {
    model.rate = 100e9 / 8000 / n;
    const double alpha = model.alpha(1, model.marking());
    CHECK_BETWEEN(alpha, before, 0.25);
    before = alpha;
  }
}

void test_rows() {
  std::vector<double> si;
  for (const auto& knob : kDolceKnobs) si.push_back(knob.row.initial_si());
  const DolceSetting s = DolceSetting::from_si(si.data());
  CHECK_EQ(s.time_reset, us(55));
  CHECK_EQ(s.byte_reset, 10'000'000);
  CHECK_EQ(s.threshold, 5);
  CHECK_EQ(s.ai_rate, 40'000'000);
  CHECK_EQ(s.hai_rate, 100'000'000);
  CHECK_EQ(s.cnp_gap, us(1));
  CHECK_EQ(s.rules.gamma, 0.9998);
  CHECK_EQ(s.rules.epsilon, 0.015);
  CHECK_EQ(s.rules.xi, 0.5001);
  CHECK_EQ(s.rules.arms, 4);
  CHECK_EQ(s.qualified, 5);
  CHECK_EQ(s.idle_reset, 0);
  CHECK_EQ(s.whole.period, 266);
  const std::pair<const char*, double> bad[] = {
      {"dolce_gamma", 0},      {"dolce_gamma", 1.5},  {"dolce_epsilon", 0}, {"dolce_epsilon", 1.5},
      {"dolce_time_reset", 0}, {"dolce_min_rate", 0}, {"dolce_alpha_0", 2}, {"dolce_alpha_3", 1.1}};
  for (const auto& [name, value] : bad) {
    std::vector<double> row = si;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (std::string(kDolceKnobs[i].row.name) == name) row[i] = value;
    }
    CHECK(row != si);
    CHECK_REFUSED(DolceSetting::from_si(row.data()), "NIC setting: ");
  }
}

}  // namespace
}  // namespace dcqcn

int main(int argc, char** argv) {
  using namespace dcqcn;
  test_table();
  test_slots_table();
  test_notification_table();
  if (check::tables_only(argc, argv)) return check::result("dolce_rc --tables");
  test_slots();
  test_counted_marks();
  test_memory_outlives_flows();
  test_idle_reset();
  test_bounds();
  test_whole_numbers();
  test_default_arms();
  test_rows();
  return check::result("dolce_rc");
}
