// The knobs of a NIC that runs DCQCN+ (Gao et al., ICNP 2018). It has never been sold, so its knobs
// have no names on devices; where the paper gives no number the source says that it is ours.
#pragma once

#include <stdexcept>

#include "model/settings/knobs.hpp"

namespace dcqcn {

namespace plus_sources {
inline constexpr const char* kPaper = "default: DCQCN+ (ICNP'18); ranges and step: ours";
inline constexpr const char* kDcqcn =
    "default: DCQCN as published, which DCQCN+ does not change; ranges and step: ours";
inline constexpr const char* kOurs = "ours (docs/reference/decisions.md)";
}  // namespace plus_sources

struct PlusSetting {
  // NP
  Time cnp_interval;  // delta
  Time min_cnp_gap;   // of one queue pair
  Time list_time;     // a record leaves the list so long after its last mark
  // RP: timers
  Time adapt_above;     // of tau
  Time timer;           // K where tau is not above that
  Time alpha_timer;     // K_alpha likewise
  double lambda;        // of K
  double lambda_alpha;  // of K_alpha
  Bytes packet;         // M
  // RP: steps
  std::uint32_t threshold;   // F
  double ai_share, ai_line;  // of the rate, at most of the line rate; doubled while alpha is large
  double alpha_large;
  double hai_share, hai_line;
  double cut;        // a cut takes this share of alpha
  double min_share;  // R_min, of the line rate
  double g, initial_alpha;

  PlusSetting();  // the rows' defaults
  static PlusSetting from_si(const double* v);
};

inline constexpr KnobUnit kPerMillion{"ppm", 1e-6, "1"};

inline constexpr auto kPlusKnobs = std::to_array<Knob<PlusSetting>>({
    {{.name = "plus_timer",
      .group = "rp_increase",
      .unit = kMicroseconds,
      .initial = 55,
      .legal = {1, 131071},
      .tuned = {10, 1000},
      .step = 50,
      .direction = -1,
      .help = "time between two increases (K) while the CNP period is short",
      .log = true,
      .tuned_by_default = true,
      .observed = true,
      .tried_si = {2e-7, 1e-3},
      .source = plus_sources::kDcqcn},
     [](PlusSetting& s, double v) { s.timer = picoseconds(v); }},
    {{.name = "plus_adapt_above",
      .group = "rp_increase",
      .unit = kMicroseconds,
      .initial = 50,
      .legal = {0, 131071},
      .tuned = {1, 1000},
      .step = 50,
      .direction = 1,
      .help = "CNP period (tau) above which both timers follow it, equations 16 and 17",
      .log = true,
      .observed = true,
      .tried_si = {1e-7, 1e-3},
      .source = plus_sources::kPaper},
     [](PlusSetting& s, double v) { s.adapt_above = picoseconds(v); }},
    {{.name = "plus_lambda",
      .group = "rp_increase",
      .unit = kPercent,
      .initial = 200,
      .legal = {1, 10000},
      .tuned = {100, 1000},
      .step = 50,
      .direction = -1,
      .help = "K in percent of the CNP period or of a packet's time (lambda, equation 17)",
      .log = true,
      .tuned_by_default = true,
      .observed = true,
      .tried_si = {0.01, 100},
      .source = plus_sources::kPaper},
     [](PlusSetting& s, double v) { s.lambda = v; }},
    {{.name = "plus_packet",
      .group = "rp_increase",
      .unit = {"B", 1, "B"},
      .initial = 1000,
      .legal = {64, 16384},
      .tuned = {64, 9000},
      .step = 500,
      .direction = -1,
      .help = "the timers leave time for a packet of this size (M, equations 16 and 17)",
      .log = true,
      .observed = true,
      .source = "default: DCQCN+ (ICNP'18), whose 1000KB we read as 1000 B; ranges and step: ours"},
     [](PlusSetting& s, double v) { s.packet = whole(v); }},
    {{.name = "plus_threshold",
      .group = "rp_increase",
      .unit = {"stages", 1, "1"},
      .initial = 5,
      .legal = {0, 31},
      .tuned = {1, 31},
      .step = 1,
      .direction = -1,
      .help = "increases of fast recovery (F); additive ones follow up to 4F",
      .tuned_by_default = true,
      .observed = true,
      .tried_si = {0, 8},
      .source = plus_sources::kPaper},
     [](PlusSetting& s, double v) { s.threshold = static_cast<std::uint32_t>(whole(v)); }},
    {{.name = "plus_ai_share",
      .group = "rp_increase",
      .unit = kPercent,
      .initial = 10,
      .legal = {0, 100},
      .tuned = {1, 50},
      .step = 5,
      .direction = 1,
      .help = "additive step of the target rate in percent of the rate; twice as much while alpha "
              "is large (equation 19)",
      .log = true,
      .tuned_by_default = true,
      .observed = true,
      .source = plus_sources::kPaper},
     [](PlusSetting& s, double v) { s.ai_share = v; }},
    {{.name = "plus_ai_line",
      .group = "rp_increase",
      .unit = kPercent,
      .initial = 1,
      .legal = {0, 100},
      .tuned = {0.1, 10},
      .step = 0.5,
      .direction = 1,
      .help = "largest additive step in percent of the line rate; twice as much while alpha is "
              "large",
      .integer = false,
      .log = true,
      .tuned_by_default = true,
      .observed = true,
      .source = plus_sources::kPaper},
     [](PlusSetting& s, double v) { s.ai_line = v; }},
    {{.name = "plus_hai_share",
      .group = "rp_increase",
      .unit = kPercent,
      .initial = 100,
      .legal = {0, 1000},
      .tuned = {10, 500},
      .step = 50,
      .direction = 1,
      .help = "hyper step of the target rate in percent of the rate (equation 21)",
      .log = true,
      .tuned_by_default = true,
      .observed = true,
      .source = plus_sources::kPaper},
     [](PlusSetting& s, double v) { s.hai_share = v; }},
    {{.name = "plus_hai_line",
      .group = "rp_increase",
      .unit = kPercent,
      .initial = 1,
      .legal = {0, 100},
      .tuned = {0.1, 10},
      .step = 0.5,
      .direction = 1,
      .help = "largest hyper step in percent of the line rate, times the stages beyond 4F",
      .integer = false,
      .log = true,
      .tuned_by_default = true,
      .observed = true,
      .source = plus_sources::kPaper},
     [](PlusSetting& s, double v) { s.hai_line = v; }},
    {{.name = "plus_cut",
      .group = "rp_decrease",
      .unit = kPercent,
      .initial = 50,
      .legal = {0, 100},
      .tuned = {10, 90},
      .step = 10,
      .direction = -1,
      .help = "a cut takes this share of alpha off the rate (equation 13)",
      .tuned_by_default = true,
      .observed = true,
      .source = plus_sources::kPaper},
     [](PlusSetting& s, double v) { s.cut = v; }},
    {{.name = "plus_min_share",
      .group = "rp_decrease",
      .unit = kPerMillion,
      .initial = 100,
      .legal = {1, 1000000},
      .tuned = {10, 100000},
      .step = 1000,
      .direction = 1,
      .help = "lowest rate of a queue pair, millionths of the line rate (R_min, equation 15)",
      .log = true,
      .tuned_by_default = true,
      .observed = true,
      .source = "default: DCQCN+ (ICNP'18), whose R_C/10000 we read as line rate/10000; ranges and "
                "step: ours"},
     [](PlusSetting& s, double v) { s.min_share = v; }},
    {{.name = "plus_alpha_timer",
      .group = "rp_alpha",
      .unit = kMicroseconds,
      .initial = 55,
      .legal = {1, 131071},
      .tuned = {1, 1000},
      .step = 5,
      .direction = -1,
      .help = "time between two decays of alpha (K_alpha) while the CNP period is short",
      .log = true,
      .observed = true,
      .tried_si = {1e-7, 1e-3},
      .source = plus_sources::kDcqcn},
     [](PlusSetting& s, double v) { s.alpha_timer = picoseconds(v); }},
    {{.name = "plus_lambda_alpha",
      .group = "rp_alpha",
      .unit = kPercent,
      .initial = 100,
      .legal = {1, 10000},
      .tuned = {50, 1000},
      .step = 50,
      .direction = -1,
      .help = "K_alpha in percent of the CNP period or of a packet's time (equation 16)",
      .log = true,
      .observed = true,
      .tried_si = {0.01, 100},
      .source = plus_sources::kPaper},
     [](PlusSetting& s, double v) { s.lambda_alpha = v; }},
    {{.name = "plus_g",
      .group = "rp_alpha",
      .unit = kOf1024,
      .initial = 4,
      .legal = {0, 1024},
      .tuned = {1, 512},
      .step = 16,
      .direction = 1,
      .help = "weight g of a CNP in alpha: alpha = (1 - g) alpha (+ g after a CNP)",
      .log = true,
      .tuned_by_default = true,
      .observed = true,
      .source = plus_sources::kDcqcn},
     [](PlusSetting& s, double v) { s.g = v; }},
    {{.name = "plus_initial_alpha",
      .group = "rp_alpha",
      .unit = kOf1024,
      .initial = 1024,
      .legal = {1, 1024},
      .tuned = {1, 1024},
      .step = 16,
      .direction = -1,
      .help = "alpha at the first CNP of a queue pair",
      .observed = true,
      .source = plus_sources::kDcqcn},
     [](PlusSetting& s, double v) { s.initial_alpha = v; }},
    {{.name = "plus_alpha_large",
      .group = "rp_alpha",
      .unit = kPercent,
      .initial = 10,
      .legal = {0, 100},
      .tuned = {1, 100},
      .step = 10,
      .direction = -1,
      .help = "above this alpha additive steps are twice as large (equation 19)",
      .observed = true,
      .source = plus_sources::kPaper},
     [](PlusSetting& s, double v) { s.alpha_large = v; }},
    {{.name = "plus_cnp_interval",
      .group = "np",
      .unit = kMicroseconds,
      .initial = 1,
      .legal = {0.1, 1000},
      .tuned = {0.5, 50},
      .step = 1,
      .direction = 1,
      .help = "time between two records that a NIC looks at, so between two of its CNPs (delta)",
      .integer = false,
      .log = true,
      .tuned_by_default = true,
      .observed = true,
      .tried_si = {1e-7, 1e-4},
      .source = plus_sources::kPaper},
     [](PlusSetting& s, double v) { s.cnp_interval = picoseconds(v); }},
    {{.name = "plus_min_cnp_gap",
      .group = "np",
      .unit = kMicroseconds,
      .initial = 45,
      .legal = {0, 131071},
      .tuned = {1, 4095},
      .step = 16,
      .direction = 1,
      .help = "shortest gap between two CNPs of one queue pair",
      .log = true,
      .tuned_by_default = true,
      .observed = true,
      .tried_si = {1e-7, 1e-3},
      .source = plus_sources::kPaper},
     [](PlusSetting& s, double v) { s.min_cnp_gap = picoseconds(v); }},
    {{.name = "plus_list_time",
      .group = "np",
      .unit = kMicroseconds,
      .initial = 100000,
      .legal = {1, 1000000},
      .tuned = {1000, 200000},
      .step = 10000,
      .direction = 1,
      .help = "a queue pair counts as congested for so long after its last marked packet",
      .log = true,
      .observed = true,
      .tried_si = {1e-6, 1e-3},
      .source = plus_sources::kOurs},
     [](PlusSetting& s, double v) { s.list_time = picoseconds(v); }},
});
static_assert(sound(kPlusKnobs));

inline PlusSetting::PlusSetting() { put_defaults(*this, kPlusKnobs); }

inline PlusSetting PlusSetting::from_si(const double* v) {
  PlusSetting s;
  put_all(s, kPlusKnobs, v);
  if (s.timer < 1 || s.alpha_timer < 1 || s.list_time < 1 || s.cnp_interval < 2) {
    throw std::invalid_argument("NIC setting: timers of dcqcn-plus must be above 0");
  }
  if (s.g > 1.0 || s.initial_alpha > 1.0 || s.cut > 1.0) {
    throw std::invalid_argument(
        "NIC setting: plus_g, plus_initial_alpha and plus_cut must be at most 1");
  }
  return s;
}

}  // namespace dcqcn
