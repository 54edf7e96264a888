// What a monitor keeps for each ToR, made when the ToR sees its first packet: switches further up
// never see one.
#pragma once

#include <cstddef>
#include <vector>

#include "model/base/archive.hpp"

namespace dcqcn::monitors {

template <class State>
class PerTor {
 public:
  explicit PerTor(int switches) : slots_(static_cast<std::size_t>(switches)) {}

  /// The state of a ToR; make() gives that of one that had none.
  template <typename Make>
  State& at(int tor, Make&& make) {
    Slot& slot = slots_[static_cast<std::size_t>(tor)];
    if (!slot.used) [[unlikely]] {
      slot.state = make();
      slot.used = true;
    }
    return slot.state;
  }

  /// Calls f(tor, state) for every ToR that has one, in the order of their numbers.
  template <typename F>
  void for_each(F&& f) {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].used) f(static_cast<int>(i), slots_[i].state);
    }
  }
  template <typename F>
  void for_each(F&& f) const {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].used) f(static_cast<int>(i), slots_[i].state);
    }
  }

  void visit(Archive& a) { a.all<PerTor>(slots_); }

 private:
  struct Slot {
    bool used = false;
    State state{};

    void visit(Archive& a) {
      a.all<Slot>(used, built(state));
      if (used) a(state);
    }
  };
  std::vector<Slot> slots_;
};

}  // namespace dcqcn::monitors
