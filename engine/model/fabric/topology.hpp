// Ports, routes and paths. Hosts are nodes 0..hosts-1 with one port each; ports are numbered
// globally, node by node, and within a node in the order of the scenario's link lines.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "model/base/random_stream.hpp"
#include "model/fabric/next_hops.hpp"
#include "model/fabric/packet.hpp"
#include "model/text/scenario.hpp"

namespace dcqcn {

struct PortSpec {
  int node = 0;
  int index = 0;      // within the node
  int peer_port = 0;  // global number of the other end
  Time ps_per_byte = 80;
  Time delay = 0;
  Bytes headroom = 0;
};

class Topology {
 public:
  explicit Topology(const Scenario& scenario);

  int hosts() const { return hosts_; }
  int nodes() const { return static_cast<int>(first_port_.size()) - 1; }
  int port_count() const { return static_cast<int>(ports_.size()); }
  const PortSpec& port(int global) const { return ports_[static_cast<std::size_t>(global)]; }
  int first_port(int node) const { return first_port_[static_cast<std::size_t>(node)]; }
  int degree(int node) const { return first_port(node + 1) - first_port(node); }
  int peer_node(int global) const { return port(port(global).peer_port).node; }
  Time smallest_delay() const { return smallest_delay_; }

  // egress port (index within the node) of a switch for a packet: ECMP by flow hash
  unsigned route(int node, std::uint16_t dst, std::uint16_t entropy) const {
    const std::size_t s = static_cast<std::size_t>(node - hosts_);
    const std::uint32_t entry = routes_[s * racks_ + rack_of_[dst]];
    if (entry < kHere) return entry;
    if (entry == kHere) return last_port_[dst];
    if (entry & kListed) [[unlikely]] {
      const int port = next_hops_.port(node, dst, entropy);
      if (port >= 0) return static_cast<unsigned>(port);
    }
    const std::uint32_t* set = &sets_[entry & ~(kMany | kListed)];
    const std::uint32_t hash = mix32(entropy * 0x9E3779B1u ^ salts_[s]);
    return set[1 + ((static_cast<std::uint64_t>(hash) * set[0]) >> 32)];
  }

  // what ECMP hashes for the data of the k-th flow of a source, or for its ACKs
  std::uint16_t entropy(int src, int dst, std::uint32_t ordinal, bool reverse) const;

  // global ports that a packet leaves by, from the source host on
  std::vector<int> path(int src, int dst, std::uint16_t entropy) const;

  // completion time of a message that is alone in the network: start of the first packet to
  // receipt of the last ACK, packet by packet, exact
  Time ideal_fct(const Wire& wire, std::span<const int> forward, std::span<const int> backward,
                 Bytes bytes, std::uint32_t ack_every = 1) const;

  // 2 x links x smallest link delay on the path
  Time base_rtt(std::span<const int> forward) const;

 private:
  static constexpr std::uint32_t kMany = 1u << 31;
  static constexpr std::uint32_t kListed = 1u << 30;  // with kMany: next_hops_ has a row
  static constexpr std::uint32_t kHere = 1u << 29;    // alone: the host hangs on this switch
  std::vector<int> number_racks();
  void build_routes(const Scenario& scenario);
  std::uint32_t& route_entry_of(int node, int dst) {
    return routes_[static_cast<std::size_t>(node - hosts_) * racks_ +
                   rack_of_[static_cast<std::size_t>(dst)]];
  }
  void list_next_hops(const std::vector<NextHopRow>& rows);
  std::vector<int> distances_to(int to) const;
  void require_reach() const;
  std::uint32_t route_entry(int node, const std::vector<int>& distance,
                            std::map<std::vector<std::uint32_t>, std::uint32_t>& known);

  int hosts_ = 0;
  Time smallest_delay_ = kNever;
  std::vector<PortSpec> ports_;
  std::vector<int> first_port_;
  std::vector<std::uint32_t> salts_;
  // Hosts of one switch, a rack, share their routes everywhere else: [switch][rack] is a port, or
  // kMany | offset into sets_, or kHere.
  std::vector<std::uint32_t> routes_;
  std::size_t racks_ = 0;
  std::vector<std::uint16_t> rack_of_;    // by host
  std::vector<std::uint16_t> last_port_;  // by host: to it, at its switch
  std::vector<std::uint32_t> sets_;       // count, then ports
  NextHops next_hops_;
};

// what ECMP hashes for the k-th flow of a source: two directions, two values
inline std::uint16_t flow_entropy(int src, int dst, std::uint32_t ordinal, bool reverse) {
  const std::uint32_t pair =
      static_cast<std::uint32_t>(src) << 16 | static_cast<std::uint32_t>(dst);
  return static_cast<std::uint16_t>(mix32(mix32(pair) + ordinal * 2 + (reverse ? 1 : 0)) >> 16);
}

}  // namespace dcqcn
