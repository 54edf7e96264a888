#include "model/fabric/topology.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

namespace dcqcn {

Topology::Topology(const Scenario& scenario) : hosts_(scenario.hosts) {
  const std::size_t nodes = static_cast<std::size_t>(scenario.nodes());
  std::vector<std::vector<PortSpec>> of_node(nodes);
  std::vector<std::pair<int, int>> ends;  // index of the port at a and at b
  for (const LinkSpec& link : scenario.links) {
    auto& a = of_node[static_cast<std::size_t>(link.a)];
    auto& b = of_node[static_cast<std::size_t>(link.b)];
    const int ia = static_cast<int>(a.size());
    const int ib = static_cast<int>(b.size());
    a.push_back({link.a, ia, 0, link.ps_per_byte, link.delay, link.headroom});
    b.push_back({link.b, ib, 0, link.ps_per_byte, link.delay, link.headroom});
    ends.emplace_back(ia, ib);
    smallest_delay_ = std::min(smallest_delay_, link.delay);
  }
  if (scenario.servers.gpus > 0) {
    smallest_delay_ = std::min(smallest_delay_, scenario.servers.delay);
  }
  first_port_.assign(nodes + 1, 0);
  for (std::size_t n = 0; n < nodes; ++n) {
    first_port_[n + 1] = first_port_[n] + static_cast<int>(of_node[n].size());
    ports_.insert(ports_.end(), of_node[n].begin(), of_node[n].end());
  }
  for (std::size_t l = 0; l < scenario.links.size(); ++l) {
    const int pa = first_port(scenario.links[l].a) + ends[l].first;
    const int pb = first_port(scenario.links[l].b) + ends[l].second;
    ports_[static_cast<std::size_t>(pa)].peer_port = pb;
    ports_[static_cast<std::size_t>(pb)].peer_port = pa;
  }
  for (const SwitchSpec& s : scenario.switches) salts_.push_back(mix32(s.salt * 2 + 1));
  build_routes(scenario);
  list_next_hops(scenario.next_hops);
}

// Numbers the switches that have hosts, in the order of their first host, and returns them.
std::vector<int> Topology::number_racks() {
  std::vector<int> rack_of_switch(salts_.size(), -1);
  std::vector<int> switches;
  rack_of_.assign(static_cast<std::size_t>(hosts_), 0);
  last_port_.assign(static_cast<std::size_t>(hosts_), 0);
  for (int host = 0; host < hosts_; ++host) {
    const PortSpec& near = port(port(first_port(host)).peer_port);
    if (near.node < hosts_) continue;  // two hosts on one link
    int& rack = rack_of_switch[static_cast<std::size_t>(near.node - hosts_)];
    if (rack < 0) {
      rack = static_cast<int>(switches.size());
      switches.push_back(near.node);
    }
    rack_of_[static_cast<std::size_t>(host)] = static_cast<std::uint16_t>(rack);
    last_port_[static_cast<std::size_t>(host)] = static_cast<std::uint16_t>(near.index);
  }
  return switches;
}

// a host has one link and does not forward, so that one walk is enough for all hosts of a switch
void Topology::build_routes(const Scenario& scenario) {
  require_reach();
  const std::vector<int> racks = number_racks();
  racks_ = racks.size();
  routes_.assign(scenario.switches.size() * racks_, 0);
  std::map<std::vector<std::uint32_t>, std::uint32_t> known;
  for (std::size_t rack = 0; rack < racks_; ++rack) {
    const std::vector<int> distance = distances_to(racks[rack]);
    for (std::size_t s = 0; s < scenario.switches.size(); ++s) {
      const int node = hosts_ + static_cast<int>(s);
      routes_[s * racks_ + rack] = node == racks[rack] ? kHere : route_entry(node, distance, known);
    }
  }
}

// links from each switch to switch `to`, by node; -1: it cannot be reached
std::vector<int> Topology::distances_to(int to) const {
  std::vector<int> distance(static_cast<std::size_t>(nodes()), -1);
  std::vector<int> frontier{to};
  distance[static_cast<std::size_t>(to)] = 0;
  for (std::size_t i = 0; i < frontier.size(); ++i) {
    for (int p = first_port(frontier[i]); p < first_port(frontier[i] + 1); ++p) {
      const int peer = peer_node(p);
      if (peer < hosts_ || distance[static_cast<std::size_t>(peer)] >= 0) continue;
      distance[static_cast<std::size_t>(peer)] =
          distance[static_cast<std::size_t>(frontier[i])] + 1;
      frontier.push_back(peer);
    }
  }
  return distance;
}

void Topology::require_reach() const {
  const int near = peer_node(first_port(0));
  const std::vector<int> distance = distances_to(near);
  for (int h = 1; h < hosts_; ++h) {
    if (h != near && distance[static_cast<std::size_t>(peer_node(first_port(h)))] < 0) {
      throw std::invalid_argument("topology: host " + std::to_string(h) + " cannot reach host 0");
    }
  }
}

// the port or the set of ports by which a switch gets one link nearer
std::uint32_t Topology::route_entry(int node, const std::vector<int>& distance,
                                    std::map<std::vector<std::uint32_t>, std::uint32_t>& known) {
  std::vector<std::uint32_t> next;
  const int here = distance[static_cast<std::size_t>(node)];
  for (int p = first_port(node); p < first_port(node + 1); ++p) {
    const int there = distance[static_cast<std::size_t>(peer_node(p))];
    if (there >= 0 && there + 1 == here) next.push_back(static_cast<std::uint32_t>(port(p).index));
  }
  if (next.empty()) return 0;
  if (next.size() == 1) return next[0];
  const auto [at, fresh] = known.try_emplace(next, static_cast<std::uint32_t>(sets_.size()));
  if (fresh) {
    sets_.push_back(static_cast<std::uint32_t>(next.size()));
    sets_.insert(sets_.end(), next.begin(), next.end());
  }
  return kMany | at->second;
}

// rows for switches with one shortest next hop are checked, and change nothing
void Topology::list_next_hops(const std::vector<NextHopRow>& rows) {
  next_hops_ = NextHops(rows);
  for (const NextHopRow& row : rows) {
    std::uint32_t& entry = route_entry_of(row.node, row.target());
    const std::uint32_t last = last_port_[static_cast<std::size_t>(row.target())];
    std::span<const std::uint32_t> ports(entry == kHere ? &last : &entry, 1);
    if (entry & kMany) {
      const std::uint32_t* set = &sets_[entry & ~(kMany | kListed)];
      ports = {set + 1, set[0]};
    }
    const auto port = static_cast<std::uint32_t>(row.port);
    if (std::find(ports.begin(), ports.end(), port) == ports.end()) {
      std::string known;
      for (const std::uint32_t p : ports) known += (known.empty() ? "" : ", ") + std::to_string(p);
      throw std::invalid_argument("compiled scenario, line " + std::to_string(row.line) +
                                  " (next_hop): port " + std::to_string(row.port) + " of switch " +
                                  std::to_string(row.node) + " is on no shortest path to host " +
                                  std::to_string(row.target()) + "; expected " + known);
    }
    if (entry & kMany) entry |= kListed;
  }
}

std::uint16_t Topology::entropy(int src, int dst, std::uint32_t ordinal, bool reverse) const {
  const std::uint16_t bits = flow_entropy(src, dst, ordinal, reverse);
  if (next_hops_.empty()) return bits;
  return next_hops_.entropy(src, dst, ordinal, reverse, bits);
}

std::vector<int> Topology::path(int src, int dst, std::uint16_t entropy) const {
  std::vector<int> out;
  int at = first_port(src);
  out.push_back(at);
  for (int node = peer_node(at); node != dst; node = peer_node(at)) {
    at = first_port(node) + static_cast<int>(route(node, static_cast<std::uint16_t>(dst), entropy));
    out.push_back(at);
  }
  return out;
}

Time Topology::ideal_fct(const Wire& wire, std::span<const int> forward,
                         std::span<const int> backward, Bytes bytes,
                         std::uint32_t ack_every) const {
  const Bytes packets = std::max<Bytes>(1, (bytes + wire.payload - 1) / wire.payload);
  const Bytes full = wire.payload + wire.data_overhead;
  const Bytes last = bytes - (packets - 1) * wire.payload + wire.data_overhead;
  Time first = 0;    // when the first packet (then its ACK) has arrived at the current hop
  Time arrived = 0;  // the same of the last one
  Time spacing = 0;  // between the others, set by the slowest hop so far
  // the last one waits for the one before it, which all hops see as the end of an even stream
  const auto cross = [&](int p, Bytes size, Bytes last_size, bool follows) {
    const PortSpec& hop = port(p);
    spacing = std::max(spacing, size * hop.ps_per_byte);
    first += size * hop.ps_per_byte;
    if (follows) arrived = std::max(arrived, first + (packets - 2) * spacing);
    arrived += last_size * hop.ps_per_byte + hop.delay;
    first += hop.delay;
  };
  for (int p : forward) cross(p, full, last, packets > 1);
  // a short last packet may find the ACK of the one before it still on the wire; if ACKs are
  // sparse that one may not exist, and the last ACK counts as alone
  for (int p : backward) cross(p, wire.ack, wire.ack, packets > 1 && ack_every == 1);
  return arrived;
}

Time Topology::base_rtt(std::span<const int> forward) const {
  Time smallest = kNever;
  for (int p : forward) smallest = std::min(smallest, port(p).delay);
  return 2 * static_cast<Time>(forward.size()) * smallest;
}

}  // namespace dcqcn
