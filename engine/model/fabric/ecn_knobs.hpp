// The knobs of a switch port: its marking curve. Every scheme has them, after those of its NIC.
#pragma once

#include "model/settings/knobs.hpp"
#include "model/settings/settings.hpp"

namespace dcqcn {

inline constexpr auto kEcnKnobs = std::to_array<Knob<EcnSetting>>({
    {{.name = "kmin",
      .group = "ecn",
      .unit = kKilobytes,
      .initial = 400,
      .legal = {0, 4e6},
      .tuned = {10, 1600},
      .step = 100,
      .direction = 1,
      .help = "queue length at which marking begins (1 KB = 1000 B)",
      .sonic = "green_min_threshold",
      .integer = false,
      .log = true,
      .tuned_by_default = true,
      .observed = true,
      .scaling = "rate",
      .source = "range and step: code of PARALEON's authors"},
     [](EcnSetting& s, double v) { s.kmin = whole(v); }},
    {{.name = "kmax",
      .group = "ecn",
      .unit = kKilobytes,
      .initial = 1600,
      .legal = {0, 4e6},
      .tuned = {40, 6400},
      .step = 400,
      .direction = 1,
      .help = "queue length above which every packet is marked (1 KB = 1000 B)",
      .sonic = "green_max_threshold",
      .integer = false,
      .log = true,
      .tuned_by_default = true,
      .observed = true,
      .scaling = "rate",
      .source = "range and step: code of PARALEON's authors"},
     [](EcnSetting& s, double v) { s.kmax = whole(v); }},
    {{.name = "pmax",
      .group = "ecn",
      .unit = {"probability", 1, "1"},
      .initial = 0.2,
      .legal = {0, 1},
      .tuned = {0.01, 1},
      .step = 0.02,
      .direction = -1,
      .help = "marking probability at kmax",
      .sonic = "green_drop_probability",
      .integer = false,
      .tuned_by_default = true,
      .observed = true,
      .source = "default: code of PARALEON's authors; range and step: ours"},
     [](EcnSetting& s, double v) { s.pmax = v; }},
});
static_assert(sound(kEcnKnobs));

}  // namespace dcqcn
