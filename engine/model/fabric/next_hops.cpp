#include "model/fabric/next_hops.hpp"

#include "model/fabric/topology.hpp"

namespace dcqcn {

NextHops::NextHops(const std::vector<NextHopRow>& rows) {
  for (const NextHopRow& row : rows) {
    const auto to = static_cast<std::uint16_t>(row.target());
    const std::uint64_t flow = key(row.src, static_cast<std::uint16_t>(row.dst), row.ordinal);
    const auto [bits, fresh] = bits_[row.acks].try_emplace(flow, std::uint16_t{0});
    if (fresh) {
      bits->second = free_bits(to, flow_entropy(row.src, row.dst, row.ordinal, row.acks));
      taken_.insert(key(0, to, bits->second));
    }
    ports_[place(row.node, to, bits->second)] = row.port;
  }
}

std::uint16_t NextHops::entropy(int src, int dst, std::uint32_t ordinal, bool acks,
                                std::uint16_t bits) const {
  const auto listed = bits_[acks].find(key(src, static_cast<std::uint16_t>(dst), ordinal));
  if (listed != bits_[acks].end()) return listed->second;
  return free_bits(static_cast<std::uint16_t>(acks ? src : dst), bits);
}

}  // namespace dcqcn
