// Which schemes there are, and the knob table that each of them brings.
#pragma once

#include <span>
#include <string>

#include "model/knobs.hpp"

namespace dcqcn {

struct SchemeKnobs {
  const char* name;
  std::vector<KnobRow> nic;  // the scheme's own rows, in the order of a NIC's columns
};

// every scheme of schemes/list.hpp; the first one is the default
std::span<const SchemeKnobs> scheme_knobs();
// throws std::invalid_argument for a name that is none
const SchemeKnobs& scheme_knobs(const std::string& name);
// the rows of a switch port, which every scheme has
std::span<const KnobRow> ecn_knobs();
// rows that a switch port has besides if a scenario turns them
std::span<const KnobRow> pfc_knobs();

}  // namespace dcqcn
