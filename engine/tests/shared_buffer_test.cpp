// The shared buffer: reserve, shared part and headroom by hand, the drop rule, pause and resume,
// and the fixed point of PFC.
#include "model/fabric/shared_buffer.hpp"

#include "model/base/random_stream.hpp"
#include "tests/check.hpp"

namespace dcqcn {
namespace {

constexpr unsigned kData = 3;

// 100,000 B, two ports with 10,000 B headroom and 4096 B reserve each. The shared pool is
// S0 = 100,000 - 2 * 14,096 = 71,808, and the threshold (S0 - shared) / 8.
// Packets of 1000 B into port 0, s = shared part of its bytes:
//   4 packets   4000 B fit into the reserve                       s 0
//   5th         s 904      threshold before: 8976
//   ...
//   12th        s 7904     before: (71,808 - 6904) / 8 = 8113 >= 7904; after: 7988, so no pause
//   13th        8904 > 7988: headroom 1000, pause
//   22nd        headroom full (10,000);  23rd: dropped
void test_one_port_by_hand() {
  SharedBuffer b(PfcConfig{}, 100'000, {10'000, 10'000});
  const auto& in = b.ingress(0, kData);
  CHECK_EQ(b.pool(), 71'808);
  CHECK_EQ(b.threshold(), 8976);
  for (int i = 0; i < 4; ++i) CHECK(b.admit(0, kData, 1000));
  CHECK_EQ(in.used, 4000);
  CHECK_EQ(b.shared_used(), 0);
  CHECK(b.admit(0, kData, 1000));
  CHECK_EQ(b.shared_used(), 904);
  CHECK_EQ(b.threshold(), 8863);
  for (int i = 6; i <= 12; ++i) {
    CHECK(b.admit(0, kData, 1000));
    CHECK(!b.should_pause(0, kData));
  }
  CHECK_EQ(b.shared_used(), 7904);
  CHECK_EQ(b.threshold(), 7988);
  CHECK(b.admit(0, kData, 1000));
  CHECK_EQ(in.used, 12'000);
  CHECK_EQ(in.headroom, 1000);
  CHECK_EQ(b.shared_used(), 7904);
  CHECK(b.should_pause(0, kData));
  b.ingress(0, kData).paused = true;
  CHECK(!b.should_pause(0, kData));  // once
  for (int i = 14; i <= 22; ++i) CHECK(b.admit(0, kData, 1000));
  CHECK_EQ(in.headroom, 10'000);
  CHECK(!b.admit(0, kData, 1000));
  CHECK_EQ(in.headroom, 10'000);
  CHECK(b.admit(0, kData, 100, false));  // an ACK: s would be 8004 > 7988
  CHECK_EQ(in.headroom, 10'100);
  b.release(0, kData, 100);

  // Departures empty the headroom first. Then s = 7904, 6904, 5904, 4904; resume when
  // s + 3072 <= threshold: 4904 + 3072 = 7976 <= (71,808 - 4904) / 8 = 8363, but 8976 > 8238.
  for (int i = 0; i < 10; ++i) {
    b.release(0, kData, 1000);
    CHECK(!b.should_resume(0, kData));
  }
  CHECK_EQ(in.headroom, 0);
  CHECK_EQ(in.used, 12'000);
  b.release(0, kData, 1000);
  b.release(0, kData, 1000);
  CHECK_EQ(b.shared_used(), 5904);
  CHECK(!b.should_resume(0, kData));
  b.release(0, kData, 1000);
  CHECK_EQ(b.shared_used(), 4904);
  CHECK(b.should_resume(0, kData));
  for (int i = 0; i < 5; ++i) b.release(0, kData, 1000);
  CHECK_EQ(in.used, 4000);
  CHECK_EQ(b.shared_used(), 0);  // the last packet was 904 B shared and 96 B reserve
}

// what one port uses lowers the threshold of the other
void test_two_ports() {
  SharedBuffer b(PfcConfig{}, 100'000, {10'000, 10'000});
  for (int i = 0; i < 12; ++i) b.admit(0, kData, 1000);
  for (int i = 0; i < 5; ++i) b.admit(1, kData, 1000);
  CHECK_EQ(b.shared_used(), 7904 + 904);
  CHECK_EQ(b.threshold(), 7875);
  CHECK(b.should_pause(0, kData));  // 7904 >= 7875: only at its next packet, but it is due
  CHECK(!b.should_pause(1, kData));
}

void test_lossy() {
  // without PFC there is no headroom: over the threshold a packet is dropped. S0 = 91,808.
  PfcConfig off;
  off.enabled = false;
  SharedBuffer b(off, 100'000, {10'000, 10'000});
  CHECK_EQ(b.pool(), 91'808);
  int taken = 0;
  while (b.admit(0, kData, 1000)) ++taken;
  // s + 1000 <= (91,808 - s) / 8, so s <= 9312: packets 5, 6, ... give 904, 1904, ..., 9904
  CHECK_EQ(taken, 14);
  CHECK_EQ(b.shared_used(), 9904);
  CHECK(!b.should_pause(0, kData));
  // a lossy priority beside lossless ones behaves in the same way
  SharedBuffer mixed(PfcConfig{}, 100'000, {10'000, 10'000});
  taken = 0;
  while (mixed.admit(0, 5, 1000)) ++taken;
  CHECK_EQ(taken, 12);
  CHECK(!mixed.should_pause(0, 5));
  CHECK_EQ(mixed.ingress(0, 5).headroom, 0);
}

// alpha, reserve and resume offset of the configuration
void test_configuration() {
  PfcConfig c;
  c.alpha = 1.0;
  CHECK_EQ(SharedBuffer(c, 100'000, {10'000, 10'000}).threshold(), 71'808);
  c.reserve = 0;
  CHECK_EQ(SharedBuffer(c, 100'000, {10'000, 10'000}).threshold(), 80'000);
  c.lossless = 1u << 3 | 1u << 4;  // headroom and reserve once per port and lossless priority
  CHECK_EQ(SharedBuffer(c, 100'000, {10'000, 10'000}).pool(), 60'000);
  c.resume_offset = 50'000;
  SharedBuffer b(c, 100'000, {10'000, 10'000});
  b.admit(0, kData, 20'000);
  b.ingress(0, kData).paused = true;
  CHECK(!b.should_resume(0, kData));  // 20,000 + 50,000 > 40,000
  b.release(0, kData, 14'000);
  CHECK(!b.should_resume(0, kData));  // 6000 + 50,000 > 54,000
  b.release(0, kData, 1000);
  CHECK(b.should_resume(0, kData));  // 5000 + 50,000 <= 55,000
}

// Exactly at the threshold an ingress is paused, a byte below it is not: alpha 1, no reserve, pool
// 2000; with s bytes queued the threshold is 2000 - s, so s = 1000 meets it.
// Two ports of one buffer with shares of their own: pool 71,808. Port 0 (1/8) pauses once its
// shared part reaches (71,808 - shared) / 8, port 1 (1/2) at half of what is free.
void test_alpha_of_one_port() {
  SharedBuffer b(PfcConfig{}, 100'000, {10'000, 10'000});
  b.set_alphas({0.125, 0.5});
  CHECK_EQ(b.threshold(), 8976);  // the smallest of the ports
  for (int i = 0; i < 12; ++i) {
    CHECK(b.admit(0, kData, 1000));
    CHECK(b.admit(1, kData, 1000));
  }
  // 12,000 B each would be 7904 B shared; port 0 met (71,808 - 13,808) / 8 = 7250 with its 12th
  CHECK(b.should_pause(0, kData));
  CHECK_EQ(b.ingress(0, kData).headroom, 1000);
  CHECK(!b.should_pause(1, kData));
  CHECK_EQ(b.shared_used(), 6904 + 7904);
  b.ingress(0, kData).paused = true;
  b.release(0, kData, 1000);
  CHECK(!b.should_resume(0, kData));  // 6904 + 3072 > (71,808 - 14,808) / 8 = 7125
  b.set_alphas({0.25, 0.25});
  CHECK(b.should_resume(0, kData));  // 9976 <= 14,250
  CHECK_EQ(b.threshold(), 14'250);
  PfcConfig config;
  config.shares[5] = 0.0625;  // that of a priority
  SharedBuffer of_class(config, 100'000, {10'000, 10'000});
  CHECK_EQ(of_class.threshold(), 4488);
  of_class.set_alphas({0.25, 0.5});
  CHECK_EQ(of_class.threshold(), 4488);
}

void test_pause_at_the_threshold() {
  PfcConfig c;
  c.alpha = 1.0;
  c.reserve = 0;
  SharedBuffer b(c, 2000, {0});
  CHECK(b.admit(0, kData, 999));
  CHECK(!b.should_pause(0, kData));
  CHECK(b.admit(0, kData, 1));
  CHECK_EQ(b.threshold(), 1000);
  CHECK_EQ(b.ingress(0, kData).headroom, 0);
  CHECK(b.should_pause(0, kData));
}

// N ports that fill until they are paused end at s = S0 / (8 + N): from s = (S0 - N s) / 8
void test_pfc_fixed_point() {
  for (int n : {1, 2, 4, 8, 16, 32}) {
    const std::vector<Bytes> headrooms(static_cast<std::size_t>(n) + 1, 187'500);
    SharedBuffer b(PfcConfig{}, 12'582'912, headrooms);
    const Bytes pool = 12'582'912 - (n + 1) * (187'500 + 4096);
    CHECK_EQ(b.pool(), pool);
    int running = n;
    while (running > 0) {
      for (unsigned port = 0; port < static_cast<unsigned>(n); ++port) {
        if (b.ingress(port, kData).paused) continue;
        CHECK(b.admit(port, kData, 1048));
        if (b.should_pause(port, kData)) {
          b.ingress(port, kData).paused = true;
          --running;
        }
      }
    }
    const double s = static_cast<double>(pool) / (8 + n);
    for (unsigned port = 0; port < static_cast<unsigned>(n); ++port) {
      const double share = static_cast<double>(b.ingress(port, kData).used) - 4096;
      CHECK_BETWEEN(share, s - 1048, s + 1048);
    }
  }
}

// Random traffic: the parts always add up, and the buffer is never more than full.
void test_bookkeeping() {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    RandomStream r(seed, Purpose::kRounds, 0);
    const Bytes capacity = 60'000 + r.below(200'000);
    SharedBuffer b(PfcConfig{}, capacity, {9000, 5000, 7000});
    std::vector<Bytes> held[3];
    Bytes total = 0;
    for (int step = 0; step < 5000; ++step) {
      const unsigned port = r.below(3);
      auto& queue = held[port];
      if (r.below(100) < (step / 500 % 2 ? 70u : 40u)) {
        const Bytes p = 63 + r.below(1000);
        const Bytes before = b.ingress(port, kData).headroom;
        if (b.admit(port, kData, p)) {
          queue.push_back(p);
          total += p;
        } else {
          CHECK(before + p > b.ingress(port, kData).headroom_limit);
        }
      } else if (!queue.empty()) {
        total -= queue.front();
        b.release(port, kData, queue.front());
        queue.erase(queue.begin());
      }
      Bytes used = 0, shared = 0;
      for (unsigned i = 0; i < 3; ++i) {
        const auto& in = b.ingress(i, kData);
        used += in.used + in.headroom;
        shared += in.used > 4096 ? in.used - 4096 : 0;
        CHECK(in.headroom >= 0 && in.headroom <= in.headroom_limit && in.used >= 0);
      }
      CHECK_EQ(used, total);
      CHECK_EQ(b.shared_used(), shared);
      CHECK(total <= capacity && shared <= b.pool());
    }
  }
}

}  // namespace
}  // namespace dcqcn

int main() {
  using namespace dcqcn;
  test_one_port_by_hand();
  test_two_ports();
  test_lossy();
  test_configuration();
  test_alpha_of_one_port();
  test_pause_at_the_threshold();
  test_pfc_fixed_point();
  test_bookkeeping();
  return check::result("shared_buffer");
}
