// The knobs of Dolce-RC+; see dolce_knobs.hpp. The number of arms is not in the paper.
#pragma once

#include "model/schemes/dolce_knobs.hpp"

namespace dcqcn {

struct DolcePlusSetting {
  UcbRules rules;
  Bytes message;

  DolcePlusSetting();  // the rows' defaults
  static DolcePlusSetting from_si(const double* v);
};

inline constexpr auto kDolcePlusKnobs = std::to_array<Knob<DolcePlusSetting>>({
    {{.name = "dolce_arms",
      .group = "rp_decrease",
      .unit = {"arms", 1, "1"},
      .initial = 6,
      .legal = {1, DrUcb::kMost},
      .tuned = {2, DrUcb::kMost},
      .step = 1,
      .direction = -1,
      .help = "rates to choose from: line rate, its half, and so on (K)",
      .tuned_by_default = true,
      .observed = true,
      .source = knob_sources::kDolceOurs},
     [](DolcePlusSetting& s, double v) { s.rules.arms = static_cast<int>(whole(v)); }},
    {{.name = "dolce_message",
      .group = "rp_alpha",
      .unit = {"B", 1, "B"},
      .initial = 8000,
      .legal = {1, 1e9},
      .tuned = {1000, 256000},
      .step = 4000,
      .direction = 1,
      .help = "payload that one decision lasts for",
      .log = true,
      .tuned_by_default = true,
      .observed = true,
      .tried_si = {1, 100'000},
      .source = "default: Dolce-RC+, section VI-B, as 8 packets of 1000 B; ranges and step: ours"},
     [](DolcePlusSetting& s, double v) { s.message = whole(v); }},
    {kDolceGammaRow, [](DolcePlusSetting& s, double v) { s.rules.gamma = v; }},
    {kDolceEpsilonRow, [](DolcePlusSetting& s, double v) { s.rules.epsilon = v; }},
    {kDolceXiRow, [](DolcePlusSetting& s, double v) { s.rules.xi = v; }},
});
static_assert(sound(kDolcePlusKnobs));

inline DolcePlusSetting::DolcePlusSetting() { put_defaults(*this, kDolcePlusKnobs); }

inline DolcePlusSetting DolcePlusSetting::from_si(const double* v) {
  DolcePlusSetting s;
  put_all(s, kDolcePlusKnobs, v);
  check_rules(s.rules);
  if (s.rules.arms < 1 || s.rules.arms > DrUcb::kMost || s.message < 1) {
    throw std::invalid_argument("NIC setting: expected dolce_arms from 1 to " +
                                std::to_string(DrUcb::kMost) + " and dolce_message above 0");
  }
  return s;
}

}  // namespace dcqcn
