// Queue pairs worked out by hand: what is sent, what is answered, what comes back after a loss.
// The notification point has a test of its own.
#include "model/flows/transport.hpp"

#include "tests/check.hpp"
#include "tests/worlds.hpp"

namespace dcqcn {
namespace {

constexpr Time us(double t) { return static_cast<Time>(t * 1e6); }
const std::string kLossy = "pfc enabled=0 lossless=3\n";

// hosts on one switch (100 Gb/s, 5 us a link); the test plays the network
struct World {
  Scenario scenario;
  Topology topology;
  FlowSource source;
  IntervalLog log;
  TransportLayer transport;

  explicit World(const std::string& rest = "", const std::string& workload = "workload flows\n",
                 int hosts = 3)
      : scenario(Scenario::parse(worlds::one_switch(hosts, rest + workload))),
        topology(scenario),
        source(scenario, topology.smallest_delay(), 1),
        transport(scenario, topology, source, log) {}

  std::uint32_t start(Bytes bytes, int src = 0, int dst = 2, std::uint32_t messages = 1,
                      std::uint8_t priority = 3, Time now = 0) {
    return transport.start_flow({now, bytes, src, dst, 0, messages, priority}, now);
  }
  Qp& qp(std::uint32_t slot) { return transport.qp(slot); }
  Packet send(std::uint32_t slot, Time now = 0) { return transport.send(qp(slot), now); }
  std::vector<Packet> send_all(std::uint32_t slot, Time now = 0) {
    std::vector<Packet> out;
    while (transport.may_send(qp(slot))) out.push_back(send(slot, now));
    return out;
  }
  Replies arrive(const Packet& p, Time now, int host = 2) {
    Replies replies;
    transport.on_data(p, host, now, replies);
    return replies;
  }
  // an ACK or NACK by hand, for a packet that was sent at `sent`
  bool answer(std::uint32_t slot, Kind kind, std::uint32_t seq, Time now, Time sent = 0) {
    Packet p{};
    p.kind = static_cast<std::uint64_t>(kind);
    p.seq = seq;
    p.sent = static_cast<std::uint64_t>(sent);
    return transport.on_ack(qp(slot), p, now);
  }
};

bool is(const Replies& r, Kind kind, std::uint32_t seq) {
  return r.count == 1 && r.packets[0].type() == kind && r.packets[0].seq == seq;
}

// 2500 B: packets of 1000, 1000 and 500 B of payload and 62 B around each
void test_packets_of_a_flow() {
  World w;
  const std::uint32_t slot = w.start(2500, 1, 2, 1, 5, us(3));
  CHECK_EQ(w.transport.live_flows(), 1);
  CHECK_EQ(w.qp(slot).base_rtt, us(20));  // two links there and back
  CHECK_EQ(w.qp(slot).next_send, 0);
  const Bytes bytes[3] = {1062, 1062, 562};
  for (std::uint32_t i = 0; i < 3; ++i) {
    CHECK(w.transport.may_send(w.qp(slot)));
    const Time now = us(3 + i);
    const Packet p = w.send(slot, now);
    CHECK(p.is_data());
    CHECK_EQ(p.bytes, bytes[i]);
    CHECK_EQ(p.seq, i);
    CHECK_EQ(p.last, i == 2);
    CHECK_EQ(p.sent, now);
    CHECK_EQ(p.dst, 2);
    CHECK_EQ(p.priority, 5);
    CHECK_EQ(p.qp, w.qp(slot).ref);
    CHECK_EQ(p.retransmit, 0);
    CHECK_EQ(p.ecn, 0);
    CHECK_EQ(w.qp(slot).next_send, now + bytes[i] * 80);  // paced at line rate
  }
  CHECK(!w.transport.may_send(w.qp(slot)));
  CHECK_EQ(w.log.totals.data_packets, 3);

  const Packet one = w.send(w.start(1));
  CHECK_EQ(one.bytes, 63);
  CHECK_EQ(one.last, 1);
  const auto two = w.send_all(w.start(2000));
  CHECK_EQ(two.size(), 2);
  CHECK_EQ(two[1].bytes, 1062);
  CHECK_EQ(two[1].last, 1);
}

// wire with other sizes: payload 256, 10 B around, ACK 20 B
void test_wire_sizes() {
  World w("wire payload=256 data=10 ack=20\n");
  const auto sent = w.send_all(w.start(300));
  CHECK_EQ(sent.size(), 2);
  CHECK_EQ(sent[0].bytes, 266);
  CHECK_EQ(sent[1].bytes, 54);
  CHECK_EQ(w.arrive(sent[0], us(11)).packets[0].bytes, 20);
  CHECK_EQ(w.log.totals.delivered, 256);
}

// every ACK goes back to the sender with the packet's start and the next packet expected
void test_every_packet_is_acknowledged() {
  World w;
  const std::uint32_t slot = w.start(3000);
  w.send(slot, us(1));
  const Packet second = w.send(slot, us(2));
  CHECK_EQ(w.arrive(second, us(12)).packets[0].seq, 0);  // packet 0 is missing
  World v;
  const Packet first = v.send(v.start(3000), us(1));
  const Replies r = v.arrive(first, us(11));
  CHECK(is(r, Kind::kAck, 1));
  CHECK_EQ(r.packets[0].sent, us(1));
  CHECK_EQ(r.packets[0].dst, 0);
  CHECK_EQ(r.packets[0].bytes, 66);
  CHECK_EQ(r.packets[0].qp, first.qp);
  CHECK_EQ(v.log.totals.acks, 1);
  CHECK_EQ(v.log.totals.delivered, 1000);
}

// one ACK per 4 packets, one for the last of a message, one for every duplicate
void test_ack_coalescing() {
  World w("transport ack_every=4\n");
  const auto p = w.send_all(w.start(10'500));
  CHECK_EQ(p.size(), 11);
  for (std::size_t i = 0; i < 11; ++i) {
    const Replies r = w.arrive(p[i], us(20));
    const bool due = i == 3 || i == 7 || i == 10;
    CHECK_EQ(r.count, due);
    if (due) CHECK(is(r, Kind::kAck, static_cast<std::uint32_t>(i + 1)));
    if (i == 4) CHECK(is(w.arrive(p[2], us(20)), Kind::kAck, 5));
  }
  CHECK_EQ(w.log.totals.acks, 4);
  // everything is here: a late duplicate gets no answer
  CHECK_EQ(w.arrive(p[5], us(30)).count, 0);
  CHECK_EQ(w.arrive(p[10], us(30)).count, 0);
}

//   t (us)   10  11  12  509.9  510      packet 1 is lost, later ones arrive
//   NACK      x               x          once, and again 500 us after
void test_nack_once_and_again() {
  World w;
  const std::uint32_t slot = w.start(9000);
  const auto p = w.send_all(slot, us(1));
  CHECK(is(w.arrive(p[0], us(9)), Kind::kAck, 1));
  const Replies first = w.arrive(p[2], us(10));
  CHECK(is(first, Kind::kNack, 1));
  CHECK_EQ(first.packets[0].bytes, 66);
  CHECK_EQ(first.packets[0].sent, us(1));
  CHECK_EQ(w.arrive(p[3], us(11)).count, 0);
  CHECK_EQ(w.arrive(p[4], us(12)).count, 0);
  CHECK_EQ(w.arrive(p[5], us(509.9)).count, 0);
  CHECK(is(w.arrive(p[6], us(510)), Kind::kNack, 1));
  CHECK_EQ(w.arrive(p[7], us(1009.9)).count, 0);  // counted from the second
  CHECK_EQ(w.log.totals.acks, 3);
  CHECK_EQ(w.log.totals.delivered, 1000);  // what came out of order is not kept
  // the gap closes, the next one is another gap: a NACK at once
  CHECK(is(w.arrive(p[1], us(1010)), Kind::kAck, 2));
  CHECK(is(w.arrive(p[3], us(1011)), Kind::kNack, 2));
  CHECK_EQ(w.arrive(p[4], us(1012)).count, 0);
}

// a mark makes a CNP while the receiver is silent, but not where CNPs ride on ACKs
void test_marks_behind_a_gap() {
  for (const bool in_ack : {false, true}) {
    World w(in_ack ? worlds::kHpccWire : "");
    auto p = w.send_all(w.start(5000));
    for (Packet& each : p) each.ecn = 1;
    const Replies nack = w.arrive(p[1], us(10));
    CHECK_EQ(nack.count, in_ack ? 1 : 2);
    CHECK(nack.packets[nack.count - 1].type() == Kind::kNack);
    CHECK_EQ(nack.packets[nack.count - 1].cnp, in_ack);
    const Replies silent = w.arrive(p[2], us(20));
    CHECK_EQ(silent.count, in_ack ? 0 : 1);
    if (!in_ack) CHECK(silent.packets[0].type() == Kind::kCnp);
    CHECK_EQ(w.log.totals.cnps, in_ack ? 1 : 2);
    // the next reply carries it
    const Replies reply = w.arrive(p[0], us(21 + 10));
    CHECK_EQ(reply.packets[reply.count - 1].cnp, in_ack);
  }
}

void test_cnp_in_a_sparse_ack() {
  World w(worlds::kHpccWire + "transport ack_every=4\n");
  auto p = w.send_all(w.start(8000));
  CHECK_EQ(w.arrive(p[0], us(10)).count, 0);
  p[1].ecn = 1;
  const Replies early = w.arrive(p[1], us(11));  // a CNP does not wait for the fourth packet
  CHECK(is(early, Kind::kAck, 2));
  CHECK_EQ(early.packets[0].cnp, 1);
  CHECK_EQ(early.packets[0].bytes, 60);
}

// 0 1 2 3 sent, 1 lost: NACK 1 sends 1 2 3 again, then goes on with 4
void test_go_back_n() {
  World w;
  const std::uint32_t slot = w.start(5000);
  for (int i = 0; i < 4; ++i) w.send(slot, us(i));
  CHECK(!w.answer(slot, Kind::kAck, 1, us(12)));
  CHECK(!w.answer(slot, Kind::kNack, 1, us(14)));
  CHECK_EQ(w.log.totals.retransmitted, 3);
  const auto again = w.send_all(slot, us(20));
  CHECK_EQ(again.size(), 4);
  for (std::uint32_t i = 0; i < 4; ++i) {
    CHECK_EQ(again[i].seq, i + 1);
    CHECK_EQ(again[i].retransmit, i < 3);
    CHECK_EQ(again[i].bytes, 1062);
    CHECK_EQ(again[i].last, i == 3);
  }
  // a NACK acknowledges what is before it; an old ACK changes nothing
  CHECK(!w.answer(slot, Kind::kNack, 3, us(40)));
  CHECK_EQ(w.qp(slot).unacked, 3);
  CHECK_EQ(w.qp(slot).next_seq, 3);
  CHECK(!w.answer(slot, Kind::kAck, 2, us(41)));
  CHECK_EQ(w.qp(slot).unacked, 3);
  // an ACK that overtakes a sender that went back
  CHECK(!w.answer(slot, Kind::kAck, 4, us(42)));
  CHECK_EQ(w.qp(slot).next_seq, 4);
  CHECK_EQ(w.send(slot, us(43)).seq, 4);
  CHECK(w.answer(slot, Kind::kAck, 5, us(60)));
  CHECK_EQ(w.log.finished.size(), 1);
  CHECK_EQ(w.log.finished[0].fct, us(60));
}

// going back across a message: the sizes and the `last` of both messages come again
void test_go_back_over_messages() {
  World w;
  const std::uint32_t slot = w.start(1500, 0, 2, 2);
  w.send_all(slot);
  CHECK(!w.answer(slot, Kind::kNack, 1, us(30)));
  const auto again = w.send_all(slot, us(31));
  CHECK_EQ(again.size(), 3);
  const Bytes bytes[3] = {562, 1062, 562};
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK_EQ(again[i].bytes, bytes[i]);
    CHECK_EQ(again[i].last, i != 1);
  }
}

//   t (us)      0     100    400   1399.9   1400   2399.9  2400
//             send   send  ACK 1     -     fires     -     fires
void test_rto() {
  World w(kLossy + "transport rto_ps=1000000000\n");
  CHECK(w.transport.lossy());
  const std::uint32_t slot = w.start(3000);
  w.send(slot, 0);
  CHECK_EQ(w.qp(slot).rto_at, us(1000));
  w.send(slot, us(100));
  CHECK_EQ(w.qp(slot).rto_at, us(1000));  // counted from the oldest packet
  CHECK(!w.answer(slot, Kind::kAck, 1, us(400)));
  CHECK_EQ(w.qp(slot).rto_at, us(1400));  // armed anew
  CHECK(!w.answer(slot, Kind::kAck, 1, us(500)));
  CHECK_EQ(w.qp(slot).rto_at, us(1400));  // a duplicate says nothing new
  CHECK(!w.transport.on_rto(w.qp(slot), us(1399.9)));
  CHECK_EQ(w.log.totals.retransmitted, 0);
  CHECK(w.transport.on_rto(w.qp(slot), us(1400)));
  CHECK_EQ(w.log.totals.retransmitted, 1);
  CHECK_EQ(w.qp(slot).next_seq, 1);
  CHECK_EQ(w.qp(slot).rto_at, us(2400));
  const Packet again = w.send(slot, us(1450));
  CHECK_EQ(again.seq, 1);
  CHECK_EQ(again.retransmit, 1);
  // the first packet in flight arms it
  CHECK_EQ(w.qp(slot).rto_at, us(2450));
  CHECK(!w.transport.on_rto(w.qp(slot), us(2449.9)));
  CHECK(w.transport.on_rto(w.qp(slot), us(2450)));
}

// a NIC takes 2 us from the posting of a message to its first packet, if nothing is before it
void test_cost_of_a_message() {
  World w("transport message_ps=2000000\n");
  const std::uint32_t slot = w.start(1000, 0, 2, 2, 3, us(3));
  CHECK_EQ(w.qp(slot).next_send, us(5));
  CHECK_EQ(w.send(slot, us(5)).last, 1);
  CHECK_EQ(w.qp(slot).next_send, us(5) + 1062 * 80);  // the second has waited that long already
}

// a NACK and a timeout slow a sender down where the network says so
void test_losses_cut() {
  for (const bool cut : {false, true}) {
    World w(kLossy + "scheme name=dcqcn mode=paper\ntransport rto_ps=30000000" +
            (cut ? " loss=cut\n" : "\n"));
    const std::uint32_t slot = w.start(100'000);
    w.send_all(slot);
    w.answer(slot, Kind::kNack, 1, us(14));
    CHECK_EQ(w.qp(slot).rate, cut ? 50'048'828'125 : 100'000'000'000);
    w.send_all(slot, us(20));
    const Rate before = w.transport.rate_at(w.qp(slot), us(51));
    CHECK(w.transport.on_rto(w.qp(slot), us(51)));
    CHECK_EQ(w.qp(slot).rate < before, cut);
  }
}

void test_rto_needs_something_in_flight() {
  World w(kLossy + "transport rto_ps=1000000000 window=1000\n");
  const std::uint32_t slot = w.start(3000);
  w.send(slot, 0);
  CHECK(!w.answer(slot, Kind::kAck, 1, us(20)));
  CHECK(!w.transport.on_rto(w.qp(slot), us(5000)));
  CHECK_EQ(w.log.totals.retransmitted, 0);
  w.send(slot, us(6000));
  CHECK_EQ(w.qp(slot).rto_at, us(7000));
}

void test_only_a_lossy_network_has_the_timer() {
  World lossless;
  const std::uint32_t slot = lossless.start(3000);
  lossless.send(slot);
  CHECK(!lossless.transport.lossy());
  CHECK_EQ(lossless.qp(slot).rto_at, kNever);
  CHECK(!lossless.answer(slot, Kind::kAck, 1, us(20)));
  CHECK_EQ(lossless.qp(slot).rto_at, kNever);
  World other("pfc enabled=1 lossless=4\n");  // workloads have priority 3
  CHECK(other.transport.lossy());
}

void test_a_finished_qp_is_gone() {
  World w;
  const std::uint32_t slot = w.start(500);
  const std::uint32_t ref = w.qp(slot).ref;
  const Packet p = w.send(slot);
  CHECK(w.transport.find(ref) == &w.qp(slot));
  const Replies r = w.arrive(p, us(11));
  CHECK(w.transport.on_ack(w.qp(slot), r.packets[0], us(22)));
  CHECK(w.transport.find(ref) == nullptr);
  CHECK_EQ(w.transport.live_flows(), 0);
  CHECK_EQ(w.log.finished.size(), 1);
  const FinishedFlow& f = w.log.finished[0];
  CHECK_EQ(f.bytes, 500);
  CHECK_EQ(f.src, 0);
  CHECK_EQ(f.dst, 2);
  CHECK_EQ(f.fct, us(22));
  // 562 B and then 66 B over two links each
  CHECK_EQ(f.ideal, us(20) + 2 * 562 * 80 + 2 * 66 * 80);
  // the slot is taken again under another name; what the old one sent is a stray
  CHECK_EQ(w.start(500, 1), slot);
  CHECK(w.qp(slot).ref != ref);
  CHECK(w.transport.find(ref) == nullptr);
  CHECK_EQ(w.arrive(p, us(30)).count, 0);
}

void test_kept_qps() {
  World w("transport qp=pair\n");
  const std::uint32_t slot = w.start(1500);
  CHECK_EQ(w.start(500), slot);
  CHECK(w.start(500, 0, 1) != slot);
  CHECK(w.start(500, 2, 0) != slot);
  CHECK(w.start(500, 0, 2, 1, 4) != slot);  // another priority
  CHECK_EQ(w.transport.live_flows(), 5);
  const auto p = w.send_all(slot);
  CHECK_EQ(p.size(), 3);
  for (const Packet& each : p) {
    const Replies r = w.arrive(each, us(12));
    CHECK_EQ(r.count, 1);
    CHECK(!w.transport.on_ack(w.qp(slot), r.packets[0], us(24)));  // stays
  }
  CHECK_EQ(w.log.finished.size(), 2);
  CHECK_EQ(w.log.finished[0].ordinal, 0);
  CHECK_EQ(w.log.finished[1].ordinal, 1);
  CHECK(w.qp(slot).live);
  CHECK(!w.transport.may_send(w.qp(slot)));
  // the next flow of the pair goes on in the same sequence, and a duplicate is still answered
  CHECK_EQ(w.start(500, 0, 2, 1, 3, us(50)), slot);
  const Packet next = w.send(slot, us(50));
  CHECK_EQ(next.seq, 3);
  CHECK(is(w.arrive(p[2], us(61)), Kind::kAck, 3));
  CHECK(is(w.arrive(next, us(62)), Kind::kAck, 4));
}

void test_messages_of_one_flow() {
  World w;
  const std::uint32_t slot = w.start(1500, 0, 2, 2);
  const auto p = w.send_all(slot);
  CHECK_EQ(p.size(), 4);
  CHECK(!w.answer(slot, Kind::kAck, 2, us(20)));
  CHECK_EQ(w.log.finished.size(), 1);
  CHECK(w.answer(slot, Kind::kAck, 4, us(25)));
  CHECK_EQ(w.log.finished.size(), 2);
  CHECK_EQ(w.log.finished[1].ordinal, 1);
  CHECK_EQ(w.log.finished[1].fct, us(25));
}

// two transfers a round over 0 -> 1 -> 2 -> 0: the first that comes is passed on, the second not
void test_ring_chaining() {
  World w("", "workload ring hosts=0,1,2 bytes=1500 steps=2 rounds=1 priority=4\n");
  const auto p = w.send_all(w.start(1500, 0, 1));
  w.arrive(p[0], us(11), 1);
  CHECK(w.transport.chained.empty());  // not before its last packet
  w.arrive(p[1], us(12), 1);
  CHECK_EQ(w.transport.chained.size(), 1);
  const FlowStart next = w.transport.chained[0];
  CHECK_EQ(next.src, 1);
  CHECK_EQ(next.dst, 2);
  CHECK_EQ(next.bytes, 1500);
  CHECK_EQ(next.start, us(12));
  CHECK_EQ(next.priority, 4);
  w.transport.chained.clear();
  for (const Packet& each : w.send_all(w.start(1500, 0, 1))) w.arrive(each, us(30), 1);
  CHECK(w.transport.chained.empty());
  // the next round begins to count anew, and the last host passes on to the first
  for (const Packet& each : w.send_all(w.start(1500, 1, 2))) w.arrive(each, us(40));
  CHECK_EQ(w.transport.chained.size(), 1);
  CHECK_EQ(w.transport.chained[0].dst, 0);
}

// 2500 B of payload in flight at most before the next packet: three packets
void test_window() {
  World w("transport window=2500\n");
  const std::uint32_t slot = w.start(9000);
  CHECK_EQ(w.send_all(slot).size(), 3);
  CHECK(!w.answer(slot, Kind::kAck, 1, us(20)));
  CHECK_EQ(w.send_all(slot).size(), 1);
  CHECK(!w.answer(slot, Kind::kAck, 4, us(30)));
  CHECK_EQ(w.send_all(slot).size(), 3);
}

// the published DCQCN halves the rate at once (alpha 1023/1024), and with it the window: 1251 B
void test_window_follows_the_rate() {
  for (const bool scaling : {false, true}) {
    World w("scheme name=dcqcn mode=paper\ntransport window=2500 window_scaling=" +
            std::to_string(scaling) + "\n");
    const std::uint32_t slot = w.start(9000);
    w.transport.on_cnp(w.qp(slot), Packet{}, 0);
    CHECK_EQ(w.transport.rate_at(w.qp(slot), us(1)), 50'048'828'125);
    CHECK_EQ(w.send_all(slot).size(), scaling ? 2 : 3);
  }
}

void test_rtt_samples() {
  World w;
  const std::uint32_t slot = w.start(4000);
  w.send_all(slot);
  w.answer(slot, Kind::kAck, 1, us(25), us(2));
  w.answer(slot, Kind::kAck, 2, us(31), us(3));
  w.answer(slot, Kind::kNack, 2, us(40), us(4));  // no sample
  w.transport.flush_rtts();
  w.transport.flush_rtts();  // nothing new
  CHECK_EQ(w.log.rtts.size(), 1);
  CHECK_EQ(w.log.rtts[0].pair, std::uint64_t{2});
  CHECK_EQ(w.log.rtts[0].base, us(20));
  CHECK_EQ(w.log.rtts[0].sum, us(23 + 28));
  CHECK_EQ(w.log.rtts[0].count, 2);
  w.send_all(slot, us(50));
  CHECK(w.answer(slot, Kind::kAck, 4, us(75), us(50)));  // a QP that goes leaves its samples
  CHECK_EQ(w.log.rtts.size(), 2);
  CHECK_EQ(w.log.rtts[1].sum, us(25));
}

// a probe every 10 us: packets that start less than that after the last one do not count
void test_rtt_probes() {
  World w("transport rtt_probe_ps=10000000\n");
  const std::uint32_t slot = w.start(9000);
  w.send_all(slot);
  w.answer(slot, Kind::kAck, 1, us(25), us(2));   // the first packet is one
  w.answer(slot, Kind::kAck, 2, us(99), us(11));  // 9 us after it
  w.answer(slot, Kind::kNack, 2, us(99), us(12));
  w.answer(slot, Kind::kAck, 3, us(41), us(12));  // 10 us after it
  w.answer(slot, Kind::kAck, 4, us(99), us(21));
  w.transport.flush_rtts();
  CHECK_EQ(w.log.rtts.size(), 1);
  CHECK_EQ(w.log.rtts[0].sum, us(23 + 29));
  CHECK_EQ(w.log.rtts[0].count, 2);
  w.answer(slot, Kind::kAck, 5, us(60), us(21));  // an interval's end is no new beginning
  w.answer(slot, Kind::kAck, 6, us(60), us(23));
  w.transport.flush_rtts();
  CHECK_EQ(w.log.rtts[1].sum, us(37));
  CHECK_EQ(w.log.rtts[1].count, 1);
}

}  // namespace
}  // namespace dcqcn

int main() {
  using namespace dcqcn;
  test_packets_of_a_flow();
  test_wire_sizes();
  test_every_packet_is_acknowledged();
  test_ack_coalescing();
  test_nack_once_and_again();
  test_marks_behind_a_gap();
  test_cnp_in_a_sparse_ack();
  test_go_back_n();
  test_go_back_over_messages();
  test_rto();
  test_cost_of_a_message();
  test_losses_cut();
  test_rto_needs_something_in_flight();
  test_only_a_lossy_network_has_the_timer();
  test_a_finished_qp_is_gone();
  test_kept_qps();
  test_messages_of_one_flow();
  test_ring_chaining();
  test_window();
  test_window_follows_the_rate();
  test_rtt_samples();
  test_rtt_probes();
  return check::result("transport");
}
