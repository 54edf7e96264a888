#include "model/next_hops.hpp"

#include "model/topology.hpp"

namespace dcqcn {

NextHops::NextHops(const std::vector<NextHopRow>& rows) {
  for (const NextHopRow& row : rows) {
    const auto dst = static_cast<std::uint16_t>(row.dst);
    const auto [flow, fresh] = bits_.try_emplace(key(row.src, dst, row.ordinal), std::uint16_t{0});
    if (fresh) {
      flow->second = free_bits(dst, flow_entropy(row.src, row.dst, row.ordinal, false));
      taken_.insert(key(0, dst, flow->second));
    }
    ports_[key(row.node, dst, flow->second)] = row.port;
  }
}

std::uint16_t NextHops::entropy(int src, int dst, std::uint32_t ordinal, bool data,
                                std::uint16_t bits) const {
  const auto to = static_cast<std::uint16_t>(dst);
  if (data) {
    const auto flow = bits_.find(key(src, to, ordinal));
    if (flow != bits_.end()) return flow->second;
  }
  return free_bits(to, bits);
}

}  // namespace dcqcn
