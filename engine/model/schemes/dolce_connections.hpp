// What the Dolce schemes learn belongs to a connection and outlives its flows. Which flows share
// one is an option: those of a pair of hosts, a priority and a number where the hosts have several
// connections (memory=pair), or those of a queue pair (memory=qp), which lives on where the
// scenario keeps queue pairs.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "model/base/archive.hpp"
#include "model/schemes/scheme.hpp"

namespace dcqcn {

// the sender's end of a queue pair holds one of these; the memory is here or in its NIC
template <class Memory>
struct ConnectionMemory {
  static constexpr std::uint32_t kHere = ~0u;
  Memory own{};
  std::uint32_t place = kHere;
};

// of a NIC: one memory for each host and priority that it has sent to
template <class Memory>
class ConnectionMemories {
 public:
  // finds or makes the memory that this queue pair shares
  std::uint32_t share(const Connection& c, const Memory& fresh) {
    const std::uint64_t key = static_cast<std::uint64_t>(c.number) << 32 |
                              static_cast<std::uint64_t>(c.dst) << 3 | (c.priority & 7u);
    const auto [at, made] = places_.try_emplace(key, static_cast<std::uint32_t>(kept_.size()));
    if (made) kept_.push_back(fresh);
    return at->second;
  }
  Memory& of(ConnectionMemory<Memory>& q) {
    return q.place == ConnectionMemory<Memory>::kHere ? q.own : kept_[q.place];
  }

  void visit(Archive& a) { a.all<ConnectionMemories>(places_, kept_); }

 private:
  std::unordered_map<std::uint64_t, std::uint32_t> places_;
  std::vector<Memory> kept_;
};

}  // namespace dcqcn
