// A network of DCQCN+ for tables: the test brings packets, pauses and the clock.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "model/flows/transport.hpp"
#include "model/schemes/dcqcn_plus.hpp"
#include "model/settings/knob_tables.hpp"
#include "tests/check.hpp"
#include "tests/worlds.hpp"

namespace dcqcn::plus_network {

struct Sent {
  Time when;
  int to;
  bool operator==(const Sent&) const = default;
};

// seven flows to host 7; the test plays the network and the clock
struct Notifier {
  Scenario scenario;
  Topology topology;
  FlowSource source;
  IntervalLog log;
  TransportLayer transport;
  std::vector<std::uint32_t> slots;
  std::vector<Sent> cnps;
  std::vector<Packet> packets;  // the same CNPs
  std::map<std::string, double> si;

  // a byte count for each of the seven flows, the last one for the rest
  explicit Notifier(double list_us, std::initializer_list<Bytes> bytes = {1'000'000'000})
      : scenario(
            Scenario::parse(worlds::one_switch(8, "scheme name=dcqcn-plus\nworkload flows\n"))),
        topology(scenario),
        source(scenario, topology.smallest_delay(), 1),
        transport(scenario, topology, source, log) {
    set({{"plus_list_time", list_us * 1e-6}}, 0);
    auto size = bytes.begin();
    for (int src = 0; src < 7; ++src) {
      slots.push_back(transport.start_flow({0, *size, src, 7, 0, 1, 3}, 0));
      if (size + 1 != bytes.end()) ++size;
    }
  }
  // every NIC gets the defaults, or what was set before, but for these SI values
  void set(const std::map<std::string, double>& changes, Time now) {
    for (const auto& [knob, value] : changes) si[knob] = value;
    std::vector<double> rows;
    for (int host = 0; host < 8; ++host) {
      for (const KnobRow& knob : scheme_knobs("dcqcn-plus").nic) {
        const auto at = si.find(knob.name);
        rows.push_back(at == si.end() ? knob.initial_si() : at->second);
      }
    }
    transport.change_settings(transport.schemes().read_settings({rows.data(), 8, rows.size() / 8}),
                              now);
  }
  // every look that is due up to t
  void run(Time t) {
    for (int looks = 0; transport.next_tick(7) <= t && CHECK_looks(++looks);) {
      Replies replies;
      const Time when = transport.next_tick(7);
      transport.tick(7, when, replies);
      for (int i = 0; i < replies.count; ++i) {
        cnps.push_back({when, replies.packets[i].dst});
        packets.push_back(replies.packets[i]);
      }
    }
  }
  static bool CHECK_looks(int looks) { return check::that(looks < 100'000, "it ends", "", 0); }
  void mark(int src, Time t, bool marked = true) {
    run(t);
    Packet p = transport.send(transport.qp(slots[static_cast<std::size_t>(src)]), 0);
    p.ecn = marked;
    Replies replies;
    transport.on_data(p, 7, t, replies);
    CHECK_EQ(replies.count, 1);  // the ACK alone: CNPs wait for their turn
  }
  // since the last call
  std::vector<std::uint64_t> counters() {
    std::vector<SchemeReport> reports;
    transport.schemes().take_counters(reports);
    return reports.at(0).counters;
  }
  std::uint64_t listed() { return counters().at(DcqcnPlus::kListed); }
};

}  // namespace dcqcn::plus_network
