// Exact counters, ternary states: what a sketch with endless memory would say.
#pragma once

#include "model/monitors/ternary.hpp"

namespace dcqcn::monitors {

class Exact : public Ternary<FlowCounter> {
 public:
  static constexpr const char* kName = "exact";
  using Options = StateOptions;
  static Fields<Options> fields() { return state_fields<Options>(); }

  using Ternary::Ternary;
};

}  // namespace dcqcn::monitors
