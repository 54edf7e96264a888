// The notification point: which marked packets make a CNP. Tables worked out by hand, times in us.
#include <stdexcept>

#include "model/flows/transport.hpp"
#include "model/settings/knob_tables.hpp"
#include "tests/check.hpp"
#include "tests/worlds.hpp"

namespace dcqcn {
namespace {

constexpr Time us(double t) { return static_cast<Time>(t * 1e6); }

// two senders, 0 and 1, with one flow each to host 2; the test plays the network
struct Receiver {
  Scenario scenario;
  Topology topology;
  FlowSource source;
  IntervalLog log;
  TransportLayer transport;
  std::uint32_t slots[2];

  explicit Receiver(const std::string& rest, double gap_us = 4)
      : scenario(Scenario::parse(worlds::one_switch(3, rest + "workload flows\n"))),
        topology(scenario),
        source(scenario, topology.smallest_delay(), 1),
        transport(scenario, topology, source, log) {
    set_gap(gap_us, 0);
    for (int src : {0, 1}) slots[src] = transport.start_flow({0, 1'000'000, src, 2, 0, 1, 3}, 0);
  }
  void set_gap(double gap_us, double t) {
    const SchemeKnobs& dcqcn_table = scheme_knobs("dcqcn");
    std::vector<double> rows;
    for (int host = 0; host < 3; ++host) {
      for (const KnobRow& knob : dcqcn_table.nic) rows.push_back(knob.initial_si());
      rows.back() = gap_us * 1e-6;  // np_min_time_between_cnps
    }
    transport.change_settings(
        transport.schemes().read_settings({rows.data(), 3, dcqcn_table.nic.size()}), us(t));
  }
  // the next packet of this sender arrives at t
  Replies arrive(int src, double t, bool marked = true) {
    Packet p = transport.send(transport.qp(slots[src]), 0);
    p.ecn = marked;
    Replies replies;
    transport.on_data(p, 2, us(t), replies);
    return replies;
  }
  // did it make a CNP packet?
  bool cnp(int src, double t, bool marked = true) {
    const Replies r = arrive(src, t, marked);
    CHECK(r.packets[r.count - 1].type() == Kind::kAck);
    CHECK_EQ(r.packets[0].dst, src);
    if (r.count == 2) {
      CHECK(r.packets[0].type() == Kind::kCnp);
      CHECK_EQ(r.packets[0].bytes, 78);
    }
    return r.count == 2;
  }
};

//   t      0   1   3.9   4   4.5   9   12.9   13    marks
//   CNP    x              x         x          x    gap 4: after 0 from 4, after 9 from 13
void test_gap_table() {
  Receiver r("");
  CHECK(!r.cnp(0, 0, false));
  CHECK(r.cnp(0, 0));
  CHECK(!r.cnp(0, 1));
  CHECK(!r.cnp(0, 3.9));
  CHECK(r.cnp(0, 4));
  CHECK(!r.cnp(0, 4.5));
  CHECK(!r.cnp(0, 8.5, false));
  CHECK(r.cnp(0, 9));
  CHECK(!r.cnp(0, 12.9));
  CHECK(r.cnp(0, 13));
  CHECK_EQ(r.log.totals.cnps, 4);

  // np_min_time_between_cnps = 0: every mark; 10: the marks at 0 and at 13 only
  Receiver every("", 0);
  Receiver rare("", 10);
  int n = 0;
  for (double t : {0.0, 1.0, 3.9, 4.0, 4.5, 9.0, 12.9, 13.0}) {
    CHECK(every.cnp(0, t));
    n += rare.cnp(0, t);
  }
  CHECK_EQ(n, 2);  // 0 and 12.9
}

void test_scope() {
  // per QP: each has its own gap
  Receiver qp("");
  CHECK(qp.cnp(0, 0));
  CHECK(qp.cnp(1, 1));
  CHECK(!qp.cnp(0, 3));
  CHECK(qp.cnp(0, 4));
  CHECK(!qp.cnp(1, 4));
  CHECK(qp.cnp(1, 5));

  // per port: one gap for all queue pairs of the receiving NIC
  Receiver port("cnp scope=port port_gap_ps=0 delay_ps=0\n");
  CHECK(port.cnp(0, 0));
  CHECK(!port.cnp(1, 1));
  CHECK(!port.cnp(0, 3));
  CHECK(port.cnp(1, 4));
  CHECK(!port.cnp(0, 4));

  // a least gap of 1 between any two CNPs of the NIC, beside 4 per QP
  Receiver least("cnp scope=qp port_gap_ps=1000000 delay_ps=0\n");
  CHECK(least.cnp(0, 0));
  CHECK(!least.cnp(1, 0.5));
  CHECK(least.cnp(1, 1));
  CHECK(!least.cnp(0, 3));
  CHECK(least.cnp(0, 4));
  CHECK(!least.cnp(1, 4.5));
  CHECK(least.cnp(1, 5));
}

void test_changed_gap() {
  // the gap that runs when the knob changes keeps its length; the next one is new
  Receiver r("");
  CHECK(r.cnp(0, 0));
  r.set_gap(1, 2);
  CHECK(!r.cnp(0, 3.5));
  CHECK(r.cnp(0, 4));
  CHECK(r.cnp(0, 5));
}

void test_cnp_in_ack() {
  Receiver r(worlds::kHpccWire);
  Replies first = r.arrive(0, 0);
  CHECK_EQ(first.count, 1);
  CHECK(first.packets[0].type() == Kind::kAck);
  CHECK(first.packets[0].cnp);
  CHECK_EQ(first.packets[0].bytes, 60);
  CHECK(!r.arrive(0, 1).packets[0].cnp);
  // a packet that comes too early is answered by a NACK, which carries the CNP as well
  r.transport.send(r.transport.qp(r.slots[0]), 0);  // lost
  Replies gap = r.arrive(0, 9);
  CHECK_EQ(gap.count, 1);
  CHECK(gap.packets[0].type() == Kind::kNack);
  CHECK(gap.packets[0].cnp);
  // the second early packet is not answered, so no CNP can ride on an answer and none is counted
  CHECK_EQ(r.arrive(0, 20).count, 0);
  CHECK_EQ(r.log.totals.cnps, 2);
}

void test_acks() {
  // every third packet and the last one are acknowledged
  Receiver r("transport ack_every=3\n");
  int acks = 0;
  for (int i = 0; i < 1000; ++i) acks += r.arrive(0, i * 0.1, false).count;
  CHECK_EQ(acks, 334);
  CHECK_EQ(r.log.totals.delivered, 1'000'000);
}

void test_delayed_cnp() {
  Receiver r("cnp scope=qp port_gap_ps=0 delay_ps=2000000\n");
  CHECK(r.arrive(0, 0).cnp_delayed);
  CHECK(!r.arrive(0, 1).cnp_delayed);
  CHECK_EQ(r.transport.cnp_delay(), us(2));
}

}  // namespace
}  // namespace dcqcn

int main() {
  using namespace dcqcn;
  test_gap_table();
  test_scope();
  test_changed_gap();
  test_cnp_in_ack();
  test_acks();
  test_delayed_cnp();
  return check::result("notification_point");
}
