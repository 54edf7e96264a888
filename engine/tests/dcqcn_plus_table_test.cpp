// DCQCN+ through the calls that the engines make: a table of its list, delta and all, and one of a
// NIC whose priorities are paused. Times are in us, rates in Gb/s. dcqcn_plus_test has the reaction
// point alone; tools/branches.py counts branches.
#include "tests/plus_network.hpp"

namespace dcqcn {
namespace {

using plus_network::Notifier;

constexpr Time us(double t) { return static_cast<Time>(t * 1e6 + 0.5); }
constexpr Rate gbps(double r) { return static_cast<Rate>(r * 1e9 + 0.5); }

// Gap of a flow's CNPs 45, a record stays 100 after its last mark; delta is 1 at first. The list is
// in the order of its places; `next` is the first look that changes anything.
//    t     event                              list     looks                  next
//    0     0 is marked                        0        1 (0), ...             1
//    1     CNP to 0, tau 1; again from 46
//    2.2   0 is marked                                                        46
//    2.5   1 is marked                        0 1      3 (0), 4 (1)           4
//    4     CNP to 1, tau 2; again from 49
//    5.5   2 is marked                        0 1 2    6 (1), 7 (2), 8 (0)    7
//    6.2   2 is marked again: nothing new                                    7
//    7     CNP to 2, tau 3; again from 52
//    9.2   1 is marked: turns 9 + 3 k; 0 has 8 + 3 k                           47 (0)
//    9.4   0 has everything: 2 takes its
//          place, the cursor is there         2 1      10 (2), 11 (1), ...    49 (1)
//   20     delta 5, in force from the next
//          mark or look that does something
//   30.5   2 is marked                                 35 (1), 40 (2), ...    55 (1)
//   47.2   3 is marked                        2 1 3    50 (2), 55 (1), 60
//   55     CNP to 1, tau 15
//   60     CNP to 3, tau 15
//   60.5   4 has everything, never listed
//   61     1 is marked                                                        65 (2)
//   61.5   5 is marked                        2 1 3 5
//   62     5 has everything, before its turn  2 1 3                           65 (2)
//   65     CNP to 2, tau 15
//   70.2   a marked packet is the last of 3   2 1      75 (2), 80 (1), ...    100 (1)
//   90     gap 1
//  100     CNP to 1 - its gap of before is over -, tau 10; again from 101
//  111     1 is marked                                 115 (2), 120 (1)       120
//  120     CNP to 1, tau 10
//  135     2 leaves, 100 after 30.5           1        140 (1), 145 (1)
//  215     1 leaves, 100 after 111
void test_list_table() {
  Notifier n(100, {3000, 1'000'000, 1'000'000, 2000, 1000, 2000});
  const auto next = [&] { return n.transport.next_tick(7); };
  n.mark(0, 0);
  CHECK_EQ(next(), us(1));
  n.mark(0, us(2.2));
  CHECK_EQ(next(), us(46));
  n.mark(1, us(2.5));
  CHECK_EQ(next(), us(4));
  n.mark(2, us(5.5));
  CHECK_EQ(next(), us(7));
  n.mark(2, us(6.2));
  CHECK_EQ(next(), us(7));
  n.mark(1, us(9.2));
  CHECK_EQ(next(), us(47));
  n.mark(0, us(9.4), false);
  CHECK_EQ(next(), us(49));
  n.set({{"plus_cnp_interval", 5e-6}}, us(20));
  n.mark(2, us(30.5));
  CHECK_EQ(next(), us(55));
  n.mark(3, us(47.2));
  n.run(us(60));
  n.mark(4, us(60.5), false);
  n.mark(1, us(61));
  CHECK_EQ(next(), us(65));
  n.mark(5, us(61.5));
  n.mark(5, us(62), false);
  CHECK_EQ(next(), us(65));
  n.mark(3, us(70.2));
  CHECK_EQ(next(), us(100));
  n.run(us(90));
  n.set({{"plus_min_cnp_gap", 1e-6}}, us(90));
  n.run(us(110));
  CHECK_EQ(next(), us(135));
  n.mark(1, us(111));
  CHECK_EQ(next(), us(120));
  n.run(us(134.999));
  CHECK_EQ(next(), us(135));
  n.run(us(135));
  CHECK_EQ(next(), us(215));
  n.run(us(1000));
  CHECK(next() == kNever);
  const struct {
    double when;
    int to;
    std::uint32_t tau;
  } table[] = {{1, 0, 1},   {4, 1, 2},   {7, 2, 3},    {55, 1, 15},
               {60, 3, 15}, {65, 2, 15}, {100, 1, 10}, {120, 1, 10}};
  CHECK_EQ(n.cnps.size(), std::size(table));
  for (std::size_t i = 0; i < std::size(table); ++i) {
    CHECK_EQ(n.cnps.at(i).when, us(table[i].when));
    CHECK_EQ(n.cnps.at(i).to, table[i].to);
    const Packet& p = n.packets.at(i);
    const CnpBits bits =
        n.transport.schemes().of(7).cnp_bits(slot_of(p.qp), static_cast<Time>(p.sent));
    CHECK_EQ(bits.reserved, table[i].tau * 1000);
  }
  CHECK_EQ(n.listed(), 5);
}

// Flows A (priority 3), B (4) and C (3) of one NIC, whose CNPs say no tau: K = K_alpha = 55. F = 1,
// g = 1/4, alpha is large above 0.3.
//    t   event                                        R            T       alpha of the flow
//    1   CNP for A                                    A 50         100     1
//   11   CNP for B                                    B 50         100     1
//   13   CNP for B                                    B 25         50      1
//   31   priority 3 is paused
//   56   A: K runs out in the pause                   A 50         100
//   61   A sends what had begun: the increase of 56 is held; at 62 nothing is due
//   68   B: S = 1 = F: fast recovery                  B 37.5       50      0.75 after the tick
//   71   priority 4 is paused
//  111   A: K again
//  121   priority 3 goes on: held twice
//  123   B: K runs out in the pause
//  131   priority 4 goes on: held once
//  166   A: S = 1: fast recovery                      A 75         100     0.421875 after the tick
//  178   B: S = 2: additive, 0.5625 is large: T += 2  B 44.75      52      0.421875 after the tick
//  181   least share 0.6: B is lifted, C is not       B 60         60
//  201   CNP for A: 75 (1 - 0.2109375) = 59.18 < 60   A 60         75      0.56640625
//  233   B: S = 3: alpha is large still               B 61         62
//  256   A: S = 1                                     A 67.5       75
//  288   B: S = 4 = 4F, alpha 0.316: T += 2           B 62.5       64
//  343   B: S = 5: hyper, T += 1                      B 63.75      65
void test_pause_table() {
  Notifier n(1000);
  n.set({{"plus_threshold", 1}, {"plus_g", 0.25}, {"plus_alpha_large", 0.3}}, 0);
  Qp* flows[3];
  for (int i = 0; i < 3; ++i) {
    const std::uint8_t priority = i == 1 ? 4 : 3;
    const auto slot = n.transport.start_flow({0, 1'000'000, 0, 7, 0, 1, priority}, 0);
    n.slots.push_back(slot);
  }
  for (std::size_t i = 0; i < 3; ++i) flows[i] = &n.transport.qp(n.slots[7 + i]);
  const auto cnp = [&](int flow, double t) {
    Packet p{};
    p.sent = static_cast<std::uint64_t>(us(t));
    n.transport.on_cnp(*flows[flow], p, us(t));
  };
  const auto rate = [&](int flow, double t) {
    // timers before this instant have run
    return n.transport.rate_at(*flows[flow], us(t) + 1);
  };
  const auto target = [&] {  // of the last flow that cut or increased
    return n.transport.schemes().take_trace().at(0).second.back().values[1];
  };
  const auto send = [&](int flow, double t) { n.transport.send(*flows[flow], us(t)); };
  cnp(0, 1);
  CHECK_EQ(rate(0, 1), gbps(50));
  cnp(1, 11);
  cnp(1, 13);
  CHECK_EQ(rate(1, 13), gbps(25));
  n.transport.on_pause(0, 3, true, us(31));
  CHECK_EQ(rate(0, 56), gbps(50));
  send(0, 61);
  send(0, 62);
  CHECK_EQ(rate(1, 67.999), gbps(25));
  CHECK_EQ(rate(1, 68), gbps(37.5));
  n.transport.on_pause(0, 4, true, us(71));
  n.transport.on_pause(0, 3, false, us(121));
  CHECK_EQ(rate(1, 123), gbps(37.5));
  n.transport.on_pause(0, 4, false, us(131));
  const std::vector<std::uint64_t> until = n.counters();
  CHECK_EQ(until[DcqcnPlus::kHeldIncreases], 3);
  CHECK_EQ(until[DcqcnPlus::kIncreases], 1);
  n.transport.schemes().trace(true);
  CHECK_EQ(rate(0, 165.999), gbps(50));
  CHECK_EQ(rate(0, 166), gbps(75));
  send(1, 178);
  CHECK_EQ(target(), gbps(52));
  CHECK_EQ(rate(1, 178), gbps(44.75));
  n.set({{"plus_min_share", 0.6}}, us(181));
  CHECK_EQ(rate(0, 181), gbps(75));
  CHECK_EQ(rate(1, 181), gbps(60));
  CHECK_EQ(rate(2, 181), gbps(100));
  cnp(0, 201);
  CHECK_EQ(target(), gbps(75));
  CHECK_EQ(rate(0, 201), gbps(60));
  send(1, 233);
  CHECK_EQ(target(), gbps(62));
  CHECK_EQ(rate(1, 233), gbps(61));
  send(0, 256);
  CHECK_EQ(rate(0, 256), gbps(67.5));
  send(1, 288);
  CHECK_EQ(target(), gbps(64));
  CHECK_EQ(rate(1, 288), gbps(62.5));
  send(1, 343);
  CHECK_EQ(target(), gbps(65));
  CHECK_EQ(rate(1, 343), gbps(63.75));
  const std::vector<std::uint64_t> all = n.counters();
  CHECK_EQ(all[DcqcnPlus::kCuts], 1);
  CHECK_EQ(all[DcqcnPlus::kIncreases], 6);
  CHECK_EQ(all[DcqcnPlus::kHeldIncreases], 0);
}

void test_bad_settings() {
  std::vector<double> si;
  for (const auto& knob : kPlusKnobs) si.push_back(knob.row.initial_si());
  const std::pair<const char*, double> bad[] = {
      {"plus_timer", 0}, {"plus_alpha_timer", 0},   {"plus_list_time", 0}, {"plus_cnp_interval", 0},
      {"plus_g", 1.5},   {"plus_initial_alpha", 2}, {"plus_cut", 1.5}};
  for (const auto& [name, value] : bad) {
    std::vector<double> row = si;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (std::string(kPlusKnobs[i].row.name) == name) row[i] = value;
    }
    CHECK(row != si);
    CHECK_REFUSED(PlusSetting::from_si(row.data()), "NIC setting: ");
  }
}

}  // namespace
}  // namespace dcqcn

int main() {
  using namespace dcqcn;
  test_list_table();
  test_pause_table();
  test_bad_settings();
  return check::result("dcqcn_plus_table");
}
