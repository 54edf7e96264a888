// Fields that a scheme puts on packets, carried beside them: a packet stays 32 bytes, and only a
// scheme that declares fields pays (one ring entry for each packet in flight). Packets of a queue
// pair and kind arrive in the order of sending, so a lane is a FIFO; what was lost is skipped.
#pragma once

#include <type_traits>
#include <vector>

#include "model/base/archive.hpp"
#include "model/base/ring.hpp"
#include "model/base/units.hpp"

namespace dcqcn {

struct NoFields {};

template <class Fields>
class Lanes {
 public:
  void open(std::uint32_t slot) {
    if (slot >= lanes_.size()) lanes_.resize(slot + 1);
    lanes_[slot].drop(lanes_[slot].size());
  }
  void put(std::uint32_t slot, Time key, const Fields& fields) { lanes_[slot].push({key, fields}); }
  // the fields of the packet with this key; default ones if none were put on it
  Fields take(std::uint32_t slot, Time key) {
    Ring<Entry>& lane = lanes_[slot];
    while (!lane.empty() && lane.front().key < key) lane.drop();
    return !lane.empty() && lane.front().key == key ? lane.pop().fields : Fields{};
  }
  // the same without taking them; packets of a queue pair are sent in the order of their keys
  Fields look(std::uint32_t slot, Time key) const {
    const Ring<Entry>& lane = lanes_[slot];
    for (std::uint32_t i = 0; i < lane.size() && lane[i].key <= key; ++i) {
      if (lane[i].key == key) return lane[i].fields;
    }
    return {};
  }
  void visit(Archive& a) { a.all<Lanes>(lanes_); }

 private:
  struct Entry {
    Time key = 0;
    Fields fields;
  };
  std::vector<Ring<Entry>> lanes_;
};

template <>
class Lanes<NoFields> {
 public:
  void open(std::uint32_t) {}
  void put(std::uint32_t, Time, NoFields) {}
  NoFields take(std::uint32_t, Time) { return {}; }
  void visit(Archive&) {}
};

}  // namespace dcqcn
