// How an engine makes its switches' buffers, and what it tells of its egress ports. One text for
// every engine whose ports keep their state under these names: queued_total, counters, pause, ecn.
#pragma once

#include <algorithm>

#include "model/fabric/pause.hpp"
#include "model/fabric/shared_buffer.hpp"
#include "sim/engine.hpp"

namespace dcqcn {

// the buffer of a switch, with the headroom of each of its ports
inline SharedBuffer buffer_of(const World& world, int node) {
  const Topology& t = world.topology;
  std::vector<Bytes> headrooms;
  for (int p = t.first_port(node); p < t.first_port(node + 1); ++p) {
    headrooms.push_back(t.port(p).headroom);
  }
  const auto which = static_cast<std::size_t>(node - t.hosts());
  return {world.scenario.pfc, world.scenario.switches[which].buffer, headrooms};
}

// lossless priorities, over which a port's pause time is averaged
inline int lossless_count(const Scenario& scenario) {
  return std::max(1, __builtin_popcount(scenario.pfc.lossless));
}

inline double mean_pause(const PauseClock& pause, const Scenario& scenario, Time now) {
  return static_cast<double>(pause.so_far(now)) / lossless_count(scenario);
}

template <typename Port>
PortSample sample_of(const Port& port, const Scenario& scenario, Time now) {
  return {port.queued_total, port.counters.tx_bytes, mean_pause(port.pause, scenario, now),
          port.pause.any()};
}

// the interval's figures; the next interval begins
template <typename Port>
PortReport take_report(Port& port, const Scenario& scenario, Time now) {
  const PortReport report{port.counters, port.queued_total, mean_pause(port.pause, scenario, now)};
  port.pause.begin_interval(now);
  port.counters = {};
  port.counters.max_queue = port.queued_total;
  return report;
}

// the same for all ports of an engine; port_at(i) is the i-th
template <typename PortAt>
void take_reports(PortAt&& port_at, const World& world, Time now, std::vector<PortReport>& out) {
  out.resize(static_cast<std::size_t>(world.topology.port_count()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = take_report(port_at(i), world.scenario, now);
  }
}

template <typename PortAt>
void set_curves(PortAt&& port_at, const std::vector<EcnSetting>& per_port) {
  for (std::size_t i = 0; i < per_port.size(); ++i) port_at(i).ecn = per_port[i];
}

// the alphas of a switch's buffer, if the settings have them; buffer_of(node) is that of a switch
template <typename BufferOf>
void set_alphas(BufferOf&& buffer_of, const Topology& t, const std::vector<EcnSetting>& per_port) {
  for (int node = t.hosts(); node < t.nodes(); ++node) {
    const int first = t.first_port(node), end = t.first_port(node + 1);
    if (first == end || per_port[static_cast<std::size_t>(first)].pfc_alpha == 0) continue;
    std::vector<double> by_port;
    for (int p = first; p < end; ++p) {
      by_port.push_back(per_port[static_cast<std::size_t>(p)].pfc_alpha);
    }
    buffer_of(node).set_alphas(by_port);
  }
}

}  // namespace dcqcn
