// The knobs of Dolce-RC and Dolce-RC+ (Ye et al., "Data-Driven Rate Control for RDMA Networks").
// Its numbers for DR-UCB are the paper's; it names no arms: ours are points of its equation 20
// (docs/reference/decisions.md). What it keeps of DCQCN has DCQCN's rows, with the values of its
// paper.
#pragma once

#include <stdexcept>

#include "model/schemes/dcqcn_knobs.hpp"
#include "model/schemes/dr_ucb_fixed.hpp"

namespace dcqcn {

namespace knob_sources {
inline constexpr const char* kDolce = "default: Dolce-RC, section V-A; ranges and step: ours";
inline constexpr const char* kDolceArm =
    "default: equation 20 of Dolce-RC at the points that docs/reference/decisions.md names; ranges "
    "and step: "
    "ours";
inline constexpr const char* kDolceOurs = "ours (docs/reference/decisions.md)";
inline constexpr const char* kDolceDcqcn =
    "default: DCQCN as published; ranges and step: as for scheme dcqcn";
}  // namespace knob_sources

// ---- rows that both schemes have ----

inline constexpr KnobUnit kPlain{"1", 1, "1"};

inline constexpr KnobRow kDolceGammaRow{.name = "dolce_gamma",
                                        .group = "rp_alpha",
                                        .unit = kPlain,
                                        .initial = 0.9998,
                                        .legal = {0.5, 0.99998},
                                        .tuned = {0.9, 0.9999},
                                        .step = 0.005,
                                        .direction = 1,
                                        .help =
                                            "what is left of a reward after an iteration of "
                                            "DR-UCB (gamma)",
                                        .integer = false,
                                        .observed = true,
                                        .source = knob_sources::kDolce};
inline constexpr KnobRow kDolceEpsilonRow{.name = "dolce_epsilon",
                                          .group = "rp_alpha",
                                          .unit = kPlain,
                                          .initial = 0.015,
                                          .legal = {0.001, 1},
                                          .tuned = {0.001, 0.2},
                                          .step = 0.005,
                                          .direction = -1,
                                          .help =
                                              "share of the iterations in which the arms take "
                                              "turns (epsilon)",
                                          .integer = false,
                                          .log = true,
                                          .observed = true,
                                          .source = knob_sources::kDolce};
inline constexpr KnobRow kDolceXiRow{.name = "dolce_xi",
                                     .group = "rp_alpha",
                                     .unit = kPlain,
                                     .initial = 0.5001,
                                     .legal = {0, 100},
                                     .tuned = {0.01, 2},
                                     .step = 0.1,
                                     .direction = -1,
                                     .help = "weight of the bonus for arms seldom played (xi)",
                                     .integer = false,
                                     .log = true,
                                     .observed = true,
                                     .source = knob_sources::kDolce};

inline void check_rules(const UcbRules& rules) {
  if (!(rules.gamma > 0 && rules.gamma <= 1) || !(rules.epsilon > 0 && rules.epsilon <= 1)) {
    throw std::invalid_argument(
        "NIC setting: expected dolce_gamma and dolce_epsilon above 0 and at most 1");
  }
}

// ---- Dolce-RC ----

struct DolceSetting : NicSetting {
  static constexpr int kArms = FixedDrUcb::kArms;
  UcbRules rules;
  FixedUcbRules whole{UcbRules{}};  // of `rules`
  std::array<double, kArms> alpha;
  std::array<double, kArms> beta;
  std::int64_t qualified;  // CNP gaps
  Time idle_reset;         // 0: never

  DolceSetting();  // the rows' defaults
  static DolceSetting from_si(const double* v);
};

namespace dolce_rows {

constexpr std::size_t dcqcn_row(std::string_view name) {
  std::size_t i = 0;
  while (kDcqcnKnobs[i].row.name != name) ++i;
  return i;
}

// a row of DCQCN with another default; the name is another too, so that NICs of both schemes fit
// into one table
template <std::size_t I>
constexpr Knob<DolceSetting> of_dcqcn(const char* name, double initial) {
  KnobRow row = kDcqcnKnobs[I].row;
  row.name = name;
  row.initial = initial;
  row.mlxconfig = row.debugfs = nullptr;
  row.source = knob_sources::kDolceDcqcn;
  return {row, [](DolceSetting& s, double v) { kDcqcnKnobs[I].put(s, v); }};
}

template <std::size_t I>
constexpr Knob<DolceSetting> alpha(const char* name, double initial) {
  return {{.name = name,
           .group = "rp_decrease",
           .unit = kPlain,
           .initial = initial,
           .legal = {0, 1},
           .tuned = {0, 1},
           .step = 0.05,
           .direction = -1,
           .help = "a CNP takes half of this off the rate while the arm is played (alpha)",
           .integer = false,
           .observed = true,
           .source = knob_sources::kDolceArm},
          [](DolceSetting& s, double v) { s.alpha[I] = v; }};
}

template <std::size_t I>
constexpr Knob<DolceSetting> beta(const char* name, double initial) {
  return {{.name = name,
           .group = "rp_increase",
           .unit = kPlain,
           .initial = initial,
           .legal = {0, 2},
           .tuned = {0.5, 1.3},
           .step = 0.05,
           .direction = 1,
           .help = "a CNP sets the target rate to this times the rate while the arm is played "
                   "(beta)",
           .integer = false,
           .observed = true,
           .source = knob_sources::kDolceArm},
          [](DolceSetting& s, double v) { s.beta[I] = v; }};
}

}  // namespace dolce_rows

inline constexpr auto kDolceKnobs = std::to_array<Knob<DolceSetting>>({
    dolce_rows::of_dcqcn<dolce_rows::dcqcn_row("rp_time_reset")>("dolce_time_reset", 55),
    dolce_rows::of_dcqcn<dolce_rows::dcqcn_row("rp_byte_reset")>("dolce_byte_reset", 156250),
    dolce_rows::of_dcqcn<dolce_rows::dcqcn_row("rp_threshold")>("dolce_threshold", 5),
    dolce_rows::of_dcqcn<dolce_rows::dcqcn_row("rp_max_rate")>("dolce_max_rate", 0),
    dolce_rows::of_dcqcn<dolce_rows::dcqcn_row("rp_ai_rate")>("dolce_ai_rate", 40),
    dolce_rows::of_dcqcn<dolce_rows::dcqcn_row("rp_hai_rate")>("dolce_hai_rate", 100),
    dolce_rows::of_dcqcn<dolce_rows::dcqcn_row("rp_min_rate")>("dolce_min_rate", 1),
    dolce_rows::of_dcqcn<dolce_rows::dcqcn_row("np_min_time_between_cnps")>("dolce_cnp_gap", 1),
    dolce_rows::alpha<0>("dolce_alpha_0", 0.044),
    dolce_rows::beta<0>("dolce_beta_0", 0.99),
    dolce_rows::alpha<1>("dolce_alpha_1", 0.118),
    dolce_rows::beta<1>("dolce_beta_1", 1.0),
    dolce_rows::alpha<2>("dolce_alpha_2", 0.491),
    dolce_rows::beta<2>("dolce_beta_2", 1.05),
    dolce_rows::alpha<3>("dolce_alpha_3", 0.864),
    dolce_rows::beta<3>("dolce_beta_3", 1.1),
    {kDolceGammaRow, [](DolceSetting& s, double v) { s.rules.gamma = v; }},
    {kDolceEpsilonRow, [](DolceSetting& s, double v) { s.rules.epsilon = v; }},
    {kDolceXiRow, [](DolceSetting& s, double v) { s.rules.xi = v; }},
    {{.name = "dolce_qualified",
      .group = "rp_alpha",
      .unit = {"CNP gaps", 1, "1"},
      .initial = 5,
      .legal = {0, 1000000},
      .tuned = {1, 100},
      .step = 1,
      .direction = 1,
      .help = "a CNP judges the arm if it comes this many CNP gaps after the last that did",
      .log = true,
      .observed = true,
      .tried_si = {0, 20},
      .source = "default: Dolce-RC, definition 2; ranges and step: ours"},
     [](DolceSetting& s, double v) { s.qualified = whole(v); }},
    {{.name = "dolce_idle_reset",
      .group = "rp_increase",
      .unit = kMicroseconds,
      .initial = 0,
      .legal = {0, 10000000},
      .tuned = {10, 10000},
      .step = 100,
      .direction = -1,
      .help = "a queue pair that sent nothing for this long starts again at line rate; 0: never",
      .log = true,
      .observed = true,
      .off = 0,
      .tried_si = {1e-6, 1e-3},
      .source = knob_sources::kDolceOurs},
     [](DolceSetting& s, double v) { s.idle_reset = picoseconds(v); }},
});
static_assert(sound(kDolceKnobs));

namespace dolce_rows {

// alpha stays what an arm says: it neither decays nor grows, and a cut takes half of it
inline void derive(DolceSetting& s) {
  static const auto kept = std::make_shared<const DecayTable>(1.0);
  check_rules(s.rules);
  if (s.time_reset < 1 || s.min_rate < 1) {
    throw std::invalid_argument("NIC setting: dolce_time_reset and dolce_min_rate must be above 0");
  }
  for (const double a : s.alpha) {
    if (a > 1.0) throw std::invalid_argument("NIC setting: dolce_alpha must be at most 1");
  }
  s.g = 1024.0;
  s.gd = 2048.0;
  s.min_dec_fac = 0.0;
  s.decay = kept;
  s.whole = FixedUcbRules(s.rules);
}

}  // namespace dolce_rows

inline DolceSetting::DolceSetting() {
  put_defaults(*this, kDolceKnobs);
  dolce_rows::derive(*this);
}

inline DolceSetting DolceSetting::from_si(const double* v) {
  DolceSetting s;
  put_all(s, kDolceKnobs, v);
  dolce_rows::derive(s);
  return s;
}

}  // namespace dcqcn
