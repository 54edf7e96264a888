#include "model/settings/knob_tables.hpp"

#include "model/fabric/ecn_knobs.hpp"
#include "model/fabric/pfc_knobs.hpp"

namespace dcqcn {

const SchemeKnobs& scheme_knobs(const std::string& name) {
  std::string known;
  for (const SchemeKnobs& scheme : scheme_knobs()) {
    if (name == scheme.name) return scheme;
    known += std::string(known.empty() ? "" : ", ") + scheme.name;
  }
  throw std::invalid_argument("unknown scheme '" + name + "' (known: " + known + ")");
}

std::span<const KnobRow> ecn_knobs() {
  static const std::vector<KnobRow> rows = rows_of(kEcnKnobs);
  return rows;
}

std::span<const KnobRow> pfc_knobs() {
  static const std::vector<KnobRow> rows = rows_of(kPfcKnobs);
  return rows;
}

}  // namespace dcqcn
