// A map from flow key to a small value that is filled during one interval, read in the order of
// first use and emptied in constant time. Keys are 32-bit and never 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/base/archive.hpp"
#include "model/base/random_stream.hpp"

namespace dcqcn {

/// What the monitors know a flow by: never 0, and practically unique per (source, ordinal).
inline std::uint32_t flow_key_of(std::uint32_t src, std::uint32_t ordinal) {
  const std::uint64_t name = static_cast<std::uint64_t>(src) << 32 | ordinal;
  return static_cast<std::uint32_t>(mix64(name + 1) >> 32) | 1u;
}

template <typename Value>
class FlowTable {
 public:
  /// The value of `key`, made (zero) at first use since the last clear.
  Value& operator[](std::uint32_t key) {
    std::size_t at = mix32(key) & mask_;
    while (slots_[at].epoch == epoch_) {
      if (slots_[at].key == key) return slots_[at].value;
      at = (at + 1) & mask_;
    }
    return insert(key, at);
  }

  Value* find(std::uint32_t key) { return const_cast<Value*>(std::as_const(*this).find(key)); }
  const Value* find(std::uint32_t key) const {
    std::size_t at = mix32(key) & mask_;
    while (slots_[at].epoch == epoch_) {
      if (slots_[at].key == key) return &slots_[at].value;
      at = (at + 1) & mask_;
    }
    return nullptr;
  }

  std::size_t size() const { return order_.size(); }
  std::size_t memory_bytes() const { return slots_.size() * sizeof(Slot); }

  /// Calls f(key, value) for every key, in the order of first use.
  template <typename F>
  void for_each(F&& f) const {
    for (const std::uint32_t at : order_) f(slots_[at].key, slots_[at].value);
  }

  void clear() {
    order_.clear();
    if (++epoch_ == 0) {  // stale stamps would come alive again after 2^32 intervals
      slots_.assign(slots_.size(), Slot{});
      epoch_ = 1;
    }
  }

  void visit(Archive& a) { a.all<FlowTable>(slots_, order_, mask_, epoch_); }

 private:
  struct Slot {
    std::uint32_t key = 0;
    std::uint32_t epoch = 0;
    Value value{};
  };

  Value& insert(std::uint32_t key, std::size_t at) {
    // a quarter full at most: a probe that has to go on costs a mispredicted branch
    if ((order_.size() + 1) * 4 > slots_.size()) {
      grow();
      at = free_slot(key);
    }
    slots_[at] = {key, epoch_, Value{}};
    order_.push_back(static_cast<std::uint32_t>(at));
    return slots_[at].value;
  }

  std::size_t free_slot(std::uint32_t key) const {
    std::size_t at = mix32(key) & mask_;
    while (slots_[at].epoch == epoch_) at = (at + 1) & mask_;
    return at;
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    std::swap(old, slots_);
    mask_ = slots_.size() - 1;
    for (std::uint32_t& position : order_) {
      const Slot& slot = old[position];
      const std::size_t at = free_slot(slot.key);
      slots_[at] = slot;
      position = static_cast<std::uint32_t>(at);
    }
  }

  std::vector<Slot> slots_ = std::vector<Slot>(1024);
  std::vector<std::uint32_t> order_;
  std::size_t mask_ = 1023;
  std::uint32_t epoch_ = 1;
};

}  // namespace dcqcn
