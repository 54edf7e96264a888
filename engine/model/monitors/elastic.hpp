// Elastic Sketch, ternary states: the monitor of PARALEON (ICNP 2024).
#pragma once

#include "model/monitors/ternary.hpp"

namespace dcqcn::monitors {

class Elastic : public Ternary<SketchCounter> {
 public:
  static constexpr const char* kName = "elastic";
  struct Options : StateOptions, SketchOptions {
    bool operator==(const Options&) const = default;
    void check(const Line& line) {
      StateOptions::check(line);
      SketchOptions::check(line);
    }
  };
  static Fields<Options> fields() {
    return join(state_fields<Options>(), sketch_fields<Options>());
  }

  using Ternary::Ternary;
};

}  // namespace dcqcn::monitors
