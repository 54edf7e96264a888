// Ports, routes, ECMP and the ideal completion time.
#include "model/fabric/topology.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "tests/check.hpp"
#include "tests/worlds.hpp"

namespace dcqcn {
namespace {

// `leaves` switches with `hosts` each, `spines` above; `parallel` links from leaf to spine
Scenario leaf_spine(int leaves, int hosts, int spines, int parallel = 1) {
  const int n = leaves * hosts;
  std::string text = "dcqcn-gym-scenario 1\nnodes hosts=" + std::to_string(n) +
                     " switches=" + std::to_string(leaves + spines) + "\n";
  for (int h = 0; h < n; ++h) {
    text += "link " + std::to_string(h) + " " + std::to_string(n + h / hosts) + "\n";
  }
  for (int l = 0; l < leaves; ++l) {
    for (int s = 0; s < spines; ++s) {
      for (int k = 0; k < parallel; ++k) {
        text += "link " + std::to_string(n + l) + " " + std::to_string(n + leaves + s) +
                " delay_ps=1000000\n";
      }
    }
  }
  return Scenario::parse(text + "pfc enabled=0\nend\n");
}

double chi_square(const std::map<int, int>& counts, int cells, int total) {
  const double expected = static_cast<double>(total) / cells;
  double sum = 0;
  for (int c = 0; c < cells; ++c) {
    const auto at = counts.find(c);
    const double d = (at == counts.end() ? 0 : at->second) - expected;
    sum += d * d / expected;
  }
  return sum;
}

// hosts of one switch share their routes but for the last hop, also where racks are interleaved
void test_routes_of_interleaved_racks() {
  std::string text = "dcqcn-gym-scenario 1\nnodes hosts=6 switches=4\n";
  for (int h = 0; h < 6; ++h) {  // switches 6 and 7 are ToRs, 8 and 9 spines
    text += "link " + std::to_string(h) + " " + std::to_string(6 + h % 2) + "\n";
  }
  for (const char* link : {"6 8", "6 9", "7 8", "7 9"}) text += std::string("link ") + link + "\n";
  const Topology t(Scenario::parse(text + "pfc enabled=0\nend\n"));
  for (int src = 0; src < 6; ++src) {
    for (int dst = 0; dst < 6; ++dst) {
      if (src == dst) continue;
      std::set<int> spines;
      for (int bits = 0; bits < 64; ++bits) {
        const auto path = t.path(src, dst, static_cast<std::uint16_t>(bits * 997));
        CHECK_EQ(path.size(), src % 2 == dst % 2 ? 2 : 4);
        CHECK_EQ(t.peer_node(path.back()), dst);
        if (path.size() == 4) spines.insert(t.peer_node(path[1]));
      }
      CHECK_EQ(spines.size(), src % 2 == dst % 2 ? 0 : 2);
    }
  }
}

void test_two_hosts_on_one_link() {
  const std::string text = "dcqcn-gym-scenario 1\nnodes hosts=2 switches=0\nlink 0 1\n";
  const Topology t(Scenario::parse(text + "pfc enabled=0\nend\n"));
  CHECK_EQ(t.path(0, 1, 3).size(), 1);
  CHECK_EQ(t.peer_node(t.path(1, 0, 3).back()), 0);
}

void test_ports() {
  const Scenario scenario = leaf_spine(2, 3, 2);
  const Topology t(scenario);
  CHECK_EQ(t.port_count(), 6 + 2 * 5 + 2 * 2);
  CHECK_EQ(t.smallest_delay(), 1'000'000);
  for (int p = 0; p < t.port_count(); ++p) {
    CHECK_EQ(t.port(t.port(p).peer_port).peer_port, p);
    CHECK(t.peer_node(p) != t.port(p).node);
    CHECK_EQ(t.first_port(t.port(p).node) + t.port(p).index, p);
  }
  CHECK_EQ(t.path(0, 1, 7).size(), 2);
  CHECK_EQ(t.path(0, 3, 7).size(), 4);
  // 2 x links x smallest delay on the way: 2 * 2 * 5 us and 2 * 4 * 1 us
  CHECK_EQ(t.base_rtt(t.path(0, 1, 7)), 20'000'000);
  CHECK_EQ(t.base_rtt(t.path(0, 3, 7)), 8'000'000);
}

// flows of one pair spread over the spines, and the way back is chosen independently
void test_ecmp() {
  const Scenario scenario = leaf_spine(2, 4, 4);
  const Topology t(scenario);
  std::map<int, int> spine, both;
  const int flows = 4000;
  for (int k = 0; k < flows; ++k) {
    const auto there = t.path(1, 6, flow_entropy(1, 6, static_cast<std::uint32_t>(k), false));
    const auto back = t.path(6, 1, flow_entropy(1, 6, static_cast<std::uint32_t>(k), true));
    CHECK_EQ(there.size(), 4);
    const int s = t.peer_node(there[1]) - 10, b = t.peer_node(back[1]) - 10;
    ++spine[s];
    ++both[4 * s + b];
  }
  CHECK(chi_square(spine, 4, flows) < 27);  // 3 degrees of freedom, p about 5e-6
  CHECK(chi_square(both, 16, flows) < 52);  // 15 degrees of freedom
}

// two tiers of choices must not follow each other: among flows that a leaf sends one way, the
// parallel links of the spine are still used alike
void test_salts() {
  // host 0 - leaf - 2 spines - 4 parallel links each to the second leaf
  std::string text = "dcqcn-gym-scenario 1\nnodes hosts=2 switches=4\nlink 0 2\nlink 1 5\n";
  for (int s = 0; s < 4; ++s)
    text += "switch " + std::to_string(2 + s) + " salt=" + std::to_string(s) + "\n";
  for (int spine : {3, 4}) {
    text += "link 2 " + std::to_string(spine) + "\n";
    for (int k = 0; k < 4; ++k) text += "link " + std::to_string(spine) + " 5\n";
  }
  const Scenario scenario = Scenario::parse(text + "pfc enabled=0\nend\n");
  const Topology t(scenario);
  std::map<int, int> by_spine[2];
  int n[2] = {};
  for (std::uint32_t k = 0; k < 4000; ++k) {
    const auto path = t.path(0, 1, flow_entropy(0, 1, k, false));
    const int spine = t.port(path[2]).node - 3;
    ++by_spine[spine][t.port(path[2]).index - 1];
    ++n[spine];
  }
  for (int s : {0, 1}) CHECK(chi_square(by_spine[s], 4, n[s]) < 27);
}

// host 0 - leaf 2 - spines 3 and 4 - four parallel links each to leaf 5 - host 1
Scenario two_choices(const std::string& rest) {
  std::string text = "dcqcn-gym-scenario 1\nnodes hosts=2 switches=4\nlink 0 2\nlink 1 5\n";
  for (int spine : {3, 4}) {
    text += "link 2 " + std::to_string(spine) + "\n";
    for (int k = 0; k < 4; ++k) text += "link " + std::to_string(spine) + " 5\n";
  }
  return Scenario::parse(text + rest + "end\n");
}

// rows take one flow's data, and neither its ACKs nor a flow that hashes like it
void test_next_hops() {
  const Topology plain(two_choices(""));
  const std::uint16_t bits = flow_entropy(0, 1, 7, false);
  std::uint32_t twin = 8;
  while (flow_entropy(0, 1, twin, false) != bits) ++twin;
  const auto port_at = [](const Topology& t, int hop, std::uint32_t ordinal) {
    const auto path = t.path(0, 1, t.entropy(0, 1, ordinal, false));
    return t.port(path[static_cast<std::size_t>(hop)]).index;
  };
  for (int leaf_port : {1, 2}) {
    for (int spine_port : {1, 2, 3, 4}) {
      const std::string rest = "next_hop 2 0 1 7 " + std::to_string(leaf_port) + "\nnext_hop " +
                               std::to_string(2 + leaf_port) + " 0 1 7 " +
                               std::to_string(spine_port) + "\nnext_hop 5 0 1 7 0\n";
      const Topology t(two_choices(rest));
      CHECK_EQ(port_at(t, 1, 7), leaf_port);
      CHECK_EQ(port_at(t, 2, 7), spine_port);
      CHECK(t.entropy(0, 1, twin, false) != t.entropy(0, 1, 7, false));
      CHECK_EQ(t.entropy(0, 1, 7, true), plain.entropy(0, 1, 7, true));
      for (std::uint32_t k = 8; k < 200; ++k) {
        CHECK_EQ(t.entropy(0, 1, k, false), plain.entropy(0, 1, k, false));
        CHECK_EQ(port_at(t, 1, k), port_at(plain, 1, k));
      }
    }
  }
}

// ACKs have rows of their own, towards the source, and bits that nothing else has there
void test_next_hops_of_acks() {
  const Topology plain(two_choices(""));
  const auto back = [](const Topology& t, std::uint32_t ordinal) {
    const auto path = t.path(1, 0, t.entropy(0, 1, ordinal, true));
    return std::pair{t.port(path[1]).index, t.port(path[2]).node};
  };
  for (const int port : {1, 2, 3, 4, 5, 6, 7, 8}) {
    const Topology t(two_choices("next_hop 5 0 1 7 " + std::to_string(port) + " packets=acks\n"));
    CHECK(back(t, 7) == (std::pair{port, port <= 4 ? 3 : 4}));
    CHECK_EQ(t.entropy(0, 1, 7, false), plain.entropy(0, 1, 7, false));
    for (std::uint32_t k = 8; k < 200; ++k) CHECK(back(t, k) == back(plain, k));
  }
  // data of the other direction with the bits of the listed ACKs moves aside
  const std::uint16_t bits = flow_entropy(0, 1, 7, true);
  std::uint32_t twin = 0;
  while (flow_entropy(1, 0, twin, false) != bits) ++twin;
  const Topology t(two_choices("next_hop 5 0 1 7 3 packets=acks\n"));
  CHECK_EQ(t.entropy(0, 1, 7, true), bits);
  CHECK_EQ(t.entropy(1, 0, twin, false), static_cast<std::uint16_t>(bits + 1));
}

void test_wrong_next_hops() {
  const auto message_of = [](const std::string& row) {
    try {
      const Topology t(two_choices(row));
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const std::string where = "compiled scenario, line 15 (next_hop): port ";
  CHECK(message_of("next_hop 2 0 1 7 0\n") ==
        where + "0 of switch 2 is on no shortest path to host 1; expected 1, 2");
  CHECK(message_of("next_hop 5 0 1 7 9\n") ==
        where + "9 of switch 5 is on no shortest path to host 1; expected 0");
  CHECK(message_of("next_hop 5 0 1 7 0\n") == "accepted");
  CHECK(message_of("next_hop 5 0 1 7 0 packets=acks\n") ==
        where + "0 of switch 5 is on no shortest path to host 0; expected 1, 2, 3, 4, 5, 6, 7, 8");
}

void test_parallel_links() {
  const Scenario scenario = leaf_spine(2, 1, 1, 3);
  const Topology t(scenario);
  std::set<int> first, second;
  for (std::uint32_t k = 0; k < 200; ++k) {
    const auto path = t.path(0, 1, flow_entropy(0, 1, k, false));
    first.insert(path[1]);
    second.insert(path[2]);
  }
  CHECK_EQ(first.size(), 3);
  CHECK_EQ(second.size(), 3);
}

void test_unreachable() {
  const Scenario s = Scenario::parse(
      "dcqcn-gym-scenario 1\nnodes hosts=2 switches=2\nlink 0 2\nlink 1 3\npfc enabled=0\nend\n");
  CHECK_REFUSED(Topology(s), "host 1 cannot reach host 0");
}

// every packet and every ACK on its own: store and forward, first come first served
Time fct_packet_by_packet(const Topology& t, const Wire& w, const std::vector<int>& forward,
                          const std::vector<int>& backward, Bytes bytes) {
  std::vector<Time> at(
      static_cast<std::size_t>(std::max<Bytes>(1, (bytes + w.payload - 1) / w.payload)));
  std::vector<Bytes> size(at.size(), w.payload + w.data_overhead);
  size.back() = bytes - static_cast<Bytes>(at.size() - 1) * w.payload + w.data_overhead;
  const auto cross = [&](int port) {
    Time free = 0;
    for (std::size_t k = 0; k < at.size(); ++k) {
      free = std::max(free, at[k]) + size[k] * t.port(port).ps_per_byte;
      at[k] = free + t.port(port).delay;
    }
  };
  for (int port : forward) cross(port);
  size.assign(at.size(), w.ack);
  for (int port : backward) cross(port);
  return at.back();
}

void test_ideal_fct() {
  RandomStream r(3, Purpose::kRounds, 0);
  const long rates[] = {10, 20, 40, 80, 160, 200, 320, 800};  // ps per byte: 800 .. 10 Gb/s
  for (int round = 0; round < 300; ++round) {
    const int hops = 2 + static_cast<int>(r.below(4));
    std::string text =
        "dcqcn-gym-scenario 1\nnodes hosts=2 switches=" + std::to_string(hops - 1) + "\n";
    for (int h = 0; h < hops; ++h) {  // a chain; two parallel links now and then
      const std::string a = h == 0 ? "0" : std::to_string(h + 1);
      const std::string b = h == hops - 1 ? "1" : std::to_string(h + 2);
      const unsigned links = h > 0 && h < hops - 1 ? 1 + r.below(2) : 1;
      for (unsigned k = 0; k < links; ++k) {
        text += "link " + a + " " + b + " ps_per_byte=" + std::to_string(rates[r.below(8)]) +
                " delay_ps=" + std::to_string(1 + r.below(6'000'000)) + "\n";
      }
    }
    const Scenario scenario = Scenario::parse(text + "pfc enabled=0\nend\n");
    const Topology t(scenario);
    Wire wire;
    if (round % 3 == 0) {
      wire.data_overhead = 48;
      wire.ack = 60;
    }
    const auto there = t.path(0, 1, static_cast<std::uint16_t>(round));
    const auto back = t.path(1, 0, static_cast<std::uint16_t>(round * 31));
    for (Bytes bytes : {1, 2, 64, 999, 1000, 1001, 1003, 1012, 2000, 2001, 4999, 50'001, 100'000}) {
      CHECK_EQ(t.ideal_fct(wire, there, back, bytes),
               fct_packet_by_packet(t, wire, there, back, bytes));
    }
  }
}

// 1 MB over two 100 Gb/s, 5 us links in the sizes of the public simulator, by hand: 1000 packets
// of 1048 B leave in 1000 * 83.84 us, the last one takes 83.84 ns more at the switch, the ACK
// 2 * 4.8 ns, and there are four link delays: 83,840 + 83.84 + 9.6 + 20,000 = 103,933.44 ns
void test_anchor() {
  const Scenario s = Scenario::parse(worlds::one_switch(2, worlds::kHpccWire));
  const Topology t(s);
  CHECK_EQ(t.ideal_fct(s.wire, t.path(0, 1, 0), t.path(1, 0, 0), 1'000'000), 103'933'440);
}

// as many hosts as a packet can name; switches have numbers beyond 16 bits, also in next-hop rows
void test_most_hosts() {
  constexpr int kLast = 65535;
  Scenario s = leaf_spine(32, 2048, 2);
  CHECK_EQ(s.hosts, kLast + 1);
  const std::uint16_t bits = Topology(s).entropy(0, kLast, 7, false);
  for (int spine = 0; spine < 2; ++spine) {
    s.next_hops = {{.node = s.hosts, .src = 0, .dst = kLast, .ordinal = 7, .port = 2048 + spine}};
    const Topology t(s);
    const auto path = t.path(0, kLast, bits);
    CHECK_EQ(path.size(), 4);
    CHECK_EQ(t.peer_node(path[1]), s.hosts + 32 + spine);
    CHECK_EQ(t.peer_node(path.back()), kLast);
    CHECK_EQ(t.peer_node(t.path(kLast, 0, bits).back()), 0);
  }
}

}  // namespace
}  // namespace dcqcn

int main() {
  using namespace dcqcn;
  test_routes_of_interleaved_racks();
  test_two_hosts_on_one_link();
  test_ports();
  test_ecmp();
  test_salts();
  test_next_hops();
  test_next_hops_of_acks();
  test_wrong_next_hops();
  test_parallel_links();
  test_unreachable();
  test_ideal_fct();
  test_anchor();
  test_most_hosts();
  return check::result("topology");
}
