// Weights of classes and NewReno's window, worked out by hand.
#include "model/fabric/classes.hpp"

#include <vector>

#include "model/flows/tcp.hpp"
#include "tests/check.hpp"

namespace dcqcn {
namespace {

constexpr Bytes kSizes[] = {600, 900, 700};

Classes three() {
  Classes classes;
  for (unsigned p = 0; p < 3; ++p) classes.of[p].weight = static_cast<int>(p) + 1;
  return classes;
}

// 1000, 2000 and 3000 B a round for packets of 600, 900 and 700 B: what is left goes to the next
void test_ten_rounds() {
  constexpr int kPackets[3][10] = {{1, 2, 2, 1, 2, 2, 1, 2, 2, 1},
                                   {2, 2, 2, 2, 3, 2, 2, 2, 3, 2},
                                   {4, 4, 4, 5, 4, 4, 5, 4, 4, 4}};
  constexpr Bytes kLeft[3][10] = {{400, 200, 0, 400, 200, 0, 400, 200, 0, 400},
                                  {200, 400, 600, 800, 100, 300, 500, 700, 0, 200},
                                  {200, 400, 600, 100, 300, 500, 0, 200, 400, 600}};
  const Classes classes = three();
  Deficits deficits;
  unsigned current = 7;
  for (int round = 0; round < 10; ++round) {
    for (unsigned p = 0; p < 3; ++p) {
      for (int i = 0; i < kPackets[p][round]; ++i) {
        current = deficits.pick(7, current, classes, 1000, [](unsigned q) { return kSizes[q]; });
        CHECK_EQ(current, p);
        deficits.sent(p, kSizes[p], false);
      }
      CHECK_EQ(deficits.left(p), kLeft[p][round]);
    }
  }
}

// an empty queue keeps nothing, nor one that pauses in its turn; one that waits keeps its rest
void test_what_is_kept() {
  const Classes classes = three();
  Deficits deficits;
  const auto head = [](unsigned q) { return kSizes[q]; };
  CHECK_EQ(deficits.pick(7, 7, classes, 1000, head), 0u);
  deficits.sent(0, 600, false);
  CHECK_EQ(deficits.pick(7, 0, classes, 1000, head), 1u);
  deficits.sent(1, 900, true);
  CHECK_EQ(deficits.left(0), 400);
  CHECK_EQ(deficits.left(1), 0);
  CHECK_EQ(deficits.pick(5, 1, classes, 1000, head), 2u);
  CHECK_EQ(deficits.left(2), 3000);
  CHECK_EQ(deficits.pick(1, 2, classes, 1000, head), 0u);
  CHECK_EQ(deficits.left(2), 0);
  CHECK_EQ(deficits.left(0), 1400);
}

// the short way of a packet that no other is ready beside
void test_alone() {
  const Classes classes = three();
  Deficits pair[2];
  unsigned current = 7;
  for (int i = 0; i < 500; ++i) {
    const unsigned p = static_cast<unsigned>(i * i / 7 % 3);
    const Bytes bytes = 300 + i * 37 % 700;
    const bool empty = i % 5 == 0;
    CHECK_EQ(pair[0].pick(1u << p, current, classes, 1000, [&](unsigned) { return bytes; }), p);
    pair[0].sent(p, bytes, empty);
    pair[1].sent_alone(current, p, bytes, classes.of[p].weight * Bytes{1000}, empty);
    current = p;
    for (unsigned q = 0; q < 8; ++q) CHECK_EQ(pair[0].left(q), pair[1].left(q));
  }
}

void test_newreno() {
  TcpSender tcp;
  tcp.start(1000, 4'000);
  const auto is = [&](Bytes window, Bytes packets) {
    CHECK_EQ(tcp.window(), window);
    CHECK_EQ(tcp.packets(), packets);
  };
  is(10'000, 10);
  CHECK(!tcp.on_ack(1, 10, true));  // slow start: one more for each ACK
  tcp.on_ack(2, 11, true);
  is(12'000, 12);
  tcp.on_ack(1, 6, true);  // half of the window was not used
  is(12'000, 12);
  CHECK(!tcp.on_repeat(12, true));
  CHECK(!tcp.on_repeat(12, true));
  CHECK(tcp.on_repeat(12, true));  // the third: half of what is on its way, and three
  CHECK_EQ(tcp.threshold(), 6'000);
  is(9'000, 9);
  CHECK(!tcp.on_repeat(12, true));
  is(10'000, 10);
  CHECK(tcp.on_ack(4, 12, false));  // a partial ACK: the next hole
  is(7'000, 7);
  CHECK(!tcp.on_ack(8, 12, true));
  is(5'000, 5);
  tcp.on_ack(1, 5, true);
  is(6'000, 6);
  tcp.on_ack(1, 6, true);  // congestion avoidance: 10^6 / 6000
  is(6'166, 6);
  tcp.on_ack(1, 6, true);
  is(6'328, 6);
  tcp.on_timeout(6);
  CHECK_EQ(tcp.threshold(), 3'000);
  is(1'000, 1);
  CHECK_EQ(tcp.rto(), 8'000);
  tcp.on_timeout(1);  // the same packet again: the threshold stays (RFC 5681, 3.1)
  CHECK_EQ(tcp.threshold(), 3'000);
  CHECK_EQ(tcp.rto(), 16'000);
  for (int i = 0; i < 3; ++i) CHECK(!tcp.on_repeat(4, false));  // echoes of the same loss
  is(1'000, 1);
}

// the first partial ACK of a recovery sets the timer anew, no further one, and the last does
void test_partial_acks() {
  TcpSender tcp;
  tcp.start(1000, 4'000);
  for (int recovery = 0; recovery < 2; ++recovery) {
    for (int i = 0; i < 3; ++i) tcp.on_repeat(10, true);
    CHECK(!tcp.holds_timer());
    tcp.on_ack(1, 10, false);
    CHECK(!tcp.holds_timer());
    tcp.on_ack(1, 9, false);
    CHECK(tcp.holds_timer());
    tcp.on_ack(8, 8, true);
    CHECK(!tcp.holds_timer());
  }
}

void test_timer() {
  TcpSender tcp;
  tcp.start(1000, 4'000);
  tcp.on_timeout(3);
  tcp.sample(1'000);  // 1000 + 4 x 500 is below the least
  CHECK_EQ(tcp.rto(), 4'000);
  tcp.sample(9'000);  // 2000 + 4 x 2375
  CHECK_EQ(tcp.rto(), 11'500);
}

}  // namespace
}  // namespace dcqcn

int main() {
  dcqcn::test_ten_rounds();
  dcqcn::test_what_is_kept();
  dcqcn::test_alone();
  dcqcn::test_newreno();
  dcqcn::test_partial_acks();
  dcqcn::test_timer();
  return dcqcn::check::result("classes");
}
