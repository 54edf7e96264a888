// The explicit next-hop table: rows that take a flow's data, or its ACKs, by a chosen port of a
// switch, where the path hash would choose. A packet names its flow by destination and 16 hash bits
// only, so a listed flow gets bits that no other flow to that destination has.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace dcqcn {

/// At `node`, data of the `ordinal`-th flow of `src`, which goes to `dst`, leaves by `port`; with
/// `acks` those that its receiver sends back, CNPs among them.
struct NextHopRow {
  int node = 0;
  int src = 0;
  int dst = 0;
  std::uint32_t ordinal = 0;
  int port = 0;  // within the node
  bool acks = false;
  int line = 0;  // of the compiled text, for messages

  /// The host that the packets go to.
  int target() const { return acks ? src : dst; }

  /// Of equal meaning, wherever it stands.
  bool operator==(const NextHopRow& o) const {
    return node == o.node && src == o.src && dst == o.dst && ordinal == o.ordinal &&
           port == o.port && acks == o.acks;
  }
};

class NextHops {
 public:
  NextHops() = default;
  explicit NextHops(const std::vector<NextHopRow>& rows);

  bool empty() const { return ports_.empty(); }

  /// The hash bits of a flow's data, or of its ACKs, where the path hash would have `bits`.
  std::uint16_t entropy(int src, int dst, std::uint32_t ordinal, bool acks,
                        std::uint16_t bits) const;

  /// The port of a row, or -1. `bits` are those of entropy().
  int port(int node, std::uint16_t dst, std::uint16_t bits) const {
    const auto row = ports_.find(place(node, dst, bits));
    return row == ports_.end() ? -1 : row->second;
  }

 private:
  static std::uint64_t key(int src, std::uint16_t dst, std::uint32_t low) {
    return static_cast<std::uint64_t>(src) << 48 | static_cast<std::uint64_t>(dst) << 32 | low;
  }
  static std::uint64_t place(int node, std::uint16_t dst, std::uint16_t bits) {
    return static_cast<std::uint64_t>(node) << 32 | static_cast<std::uint64_t>(dst) << 16 | bits;
  }
  std::uint16_t free_bits(std::uint16_t dst, std::uint16_t bits) const {
    while (taken_.contains(key(0, dst, bits))) ++bits;
    return bits;
  }

  std::unordered_map<std::uint64_t, std::uint16_t> bits_[2];  // of listed flows' data and ACKs
  std::unordered_set<std::uint64_t> taken_;                   // target and bits of what is listed
  std::unordered_map<std::uint64_t, int> ports_;
};

}  // namespace dcqcn
