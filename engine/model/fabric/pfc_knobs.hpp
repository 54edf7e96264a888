// The optional knob of a switch port: its share of the shared buffer. It stands in no table by
// default; a network whose scenario turns it has it as a column after those of ecn_knobs.hpp.
#pragma once

#include "model/settings/knobs.hpp"
#include "model/settings/settings.hpp"

namespace dcqcn {

inline constexpr auto kPfcKnobs = std::to_array<Knob<EcnSetting>>({
    {{.name = "pfc_alpha",
      .group = "pfc",
      .unit = {"share", 1, "1"},
      .initial = 0.125,
      .legal = {0.0078125, 8},
      .tuned = {0.0625, 0.5},
      .step = 0.0625,
      .direction = 1,
      .help = "share of the free shared buffer at which an ingress port pauses its peer",
      .sonic = "dynamic_th",
      .integer = false,
      .log = true,
      .source = "default: code of HPCC's authors; range: ACC; legal: 2^-7..2^3, as in SONiC"},
     [](EcnSetting& s, double v) { s.pfc_alpha = v; }},
});
static_assert(sound(kPfcKnobs));

}  // namespace dcqcn
