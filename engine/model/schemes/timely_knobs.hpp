// The knobs of TIMELY. Its paper (Mittal et al., SIGCOMM 2015, section 4.3 and algorithm 1) names
// them; two public implementations give the numbers that the paper leaves open: the HPCC ns-3
// lineage and eRPC. docs/reference/decisions.md tells which we took.
#pragma once

#include <algorithm>
#include <stdexcept>

#include "model/settings/knobs.hpp"

namespace dcqcn {

struct TimelySetting {
  Time t_low, t_high;
  Time min_rtt;
  std::int64_t weight;  // of a new difference of round trips, of 1024
  double beta;
  Rate step;  // delta
  std::uint32_t hai_after;
  std::int64_t hai_factor;
  std::uint32_t segment;  // packets
  double max_cut;
  Rate min_rate;
  Rate start_rate;  // 0: line rate

  TimelySetting();  // the rows' defaults
  static TimelySetting from_si(const double* v);
};

namespace knob_sources {
inline constexpr const char* kTimely =
    "default: TIMELY as public implementations have it; legal, tuned and step: ours";
inline constexpr const char* kTimelyOurs = "ours (docs/reference/decisions.md)";
}  // namespace knob_sources

inline constexpr auto kTimelyKnobs = std::to_array<Knob<TimelySetting>>({
    {{.name = "timely_t_low",
      .group = "rp_increase",
      .unit = kMicroseconds,
      .initial = 50,
      .legal = {0, 131071},
      .tuned = {5, 500},
      .step = 5,
      .direction = 1,
      .help = "round trips below this always increase the rate (T_low)",
      .log = true,
      .tuned_by_default = true,
      .observed = true,
      .tried_si = {1e-6, 1e-3},
      .source = knob_sources::kTimely},
     [](TimelySetting& s, double v) { s.t_low = picoseconds(v); }},
    {{.name = "timely_t_high",
      .group = "rp_decrease",
      .unit = kMicroseconds,
      .initial = 500,
      .legal = {1, 131071},
      .tuned = {20, 2000},
      .step = 50,
      .direction = 1,
      .help = "round trips above this always cut the rate (T_high)",
      .log = true,
      .tuned_by_default = true,
      .observed = true,
      .tried_si = {1e-6, 1e-3},
      .source = knob_sources::kTimely},
     [](TimelySetting& s, double v) { s.t_high = picoseconds(v); }},
    {{.name = "timely_min_rtt",
      .group = "rp_alpha",
      .unit = kMicroseconds,
      .initial = 20,
      .legal = {1, 131071},
      .tuned = {1, 200},
      .step = 5,
      .direction = 1,
      .help = "what the gradient is divided by, and the shortest time between two updates",
      .log = true,
      .tuned_by_default = true,
      .observed = true,
      .tried_si = {1e-6, 1e-4},
      .source = knob_sources::kTimely},
     [](TimelySetting& s, double v) { s.min_rtt = picoseconds(v); }},
    {{.name = "timely_weight",
      .group = "rp_alpha",
      .unit = kOf1024,
      .initial = 896,
      .legal = {1, 1024},
      .tuned = {20, 1024},
      .step = 16,
      .direction = -1,
      .help = "weight of a new difference of round trips in the smoothed one (alpha)",
      .tuned_by_default = true,
      .observed = true,
      .source = knob_sources::kTimely},
     [](TimelySetting& s, double v) { s.weight = whole(v * 1024.0); }},
    {{.name = "timely_beta",
      .group = "rp_decrease",
      .unit = kPercent,
      .initial = 80,
      .legal = {0, 100},
      .tuned = {5, 100},
      .step = 5,
      .direction = -1,
      .help = "how strongly a gradient, or a round trip above T_high, cuts the rate (beta)",
      .tuned_by_default = true,
      .observed = true,
      .source = knob_sources::kTimely},
     [](TimelySetting& s, double v) { s.beta = v; }},
    // 10 Mb/s at 10 Gb/s in the paper
    {{.name = "timely_step",
      .group = "rp_increase",
      .unit = kMegabits,
      .initial = 100,
      .legal = {1, 131071},
      .tuned = {1, 5000},
      .step = 50,
      .direction = 1,
      .help = "additive increase of the rate (delta); follows the line rate",
      .log = true,
      .tuned_by_default = true,
      .observed = true,
      .scaling = "rate",
      .tried_si = {1, 1e15},
      .source = knob_sources::kTimely},
     [](TimelySetting& s, double v) { s.step = whole(v); }},
    {{.name = "timely_hai_after",
      .group = "rp_increase",
      .unit = {"updates", 1, "1"},
      .initial = 5,
      .legal = {1, 1023},
      .tuned = {1, 20},
      .step = 1,
      .direction = -1,
      .help = "updates in a row without a rising round trip before the increase is larger",
      .tuned_by_default = true,
      .observed = true,
      .tried_si = {1, 8},
      .source = knob_sources::kTimely},
     [](TimelySetting& s, double v) { s.hai_after = static_cast<std::uint32_t>(whole(v)); }},
    {{.name = "timely_hai_factor",
      .group = "rp_increase",
      .unit = {"steps", 1, "1"},
      .initial = 5,
      .legal = {1, 1023},
      .tuned = {1, 50},
      .step = 1,
      .direction = 1,
      .help = "how many additive steps the larger increase is",
      .tuned_by_default = true,
      .observed = true,
      .tried_si = {1, 50},
      .source = knob_sources::kTimely},
     [](TimelySetting& s, double v) { s.hai_factor = whole(v); }},
    {{.name = "timely_segment",
      .group = "rp_alpha",
      .unit = {"packets", 1, "1"},
      .initial = 16,
      .legal = {1, 65535},
      .tuned = {1, 64},
      .step = 4,
      .direction = 1,
      .help = "packets that have to be acknowledged between two updates",
      .log = true,
      .observed = true,
      .tried_si = {1, 64},
      .source = "default: the smallest segment of TIMELY's paper, in packets of 1000 B; legal, "
                "tuned and step: ours"},
     [](TimelySetting& s, double v) { s.segment = static_cast<std::uint32_t>(whole(v)); }},
    {{.name = "timely_max_cut",
      .group = "rp_decrease",
      .unit = kPercent,
      .initial = 50,
      .legal = {0, 100},
      .tuned = {5, 90},
      .step = 5,
      .direction = -1,
      .help = "the most that one cut takes off the rate",
      .observed = true,
      .source = "default: eRPC; legal, tuned and step: ours"},
     [](TimelySetting& s, double v) { s.max_cut = v; }},
    {{.name = "timely_min_rate",
      .group = "rp_decrease",
      .unit = kMegabits,
      .initial = 100,
      .legal = {1, 2147483647},
      .tuned = {10, 5000},
      .step = 100,
      .direction = 1,
      .help = "lowest rate of a queue pair; follows the line rate",
      .log = true,
      .observed = true,
      .scaling = "rate",
      .tried_si = {1e6, 1e15},
      .source = knob_sources::kTimelyOurs},
     [](TimelySetting& s, double v) { s.min_rate = whole(v); }},
    {{.name = "timely_start_rate",
      .group = "rp_increase",
      .unit = kMegabits,
      .initial = 0,
      .legal = {0, 2147483647},
      .tuned = {10, 100},
      .step = 10,
      .direction = 1,
      .help = "rate of a new queue pair; 0: line rate",
      .observed = true,
      .scaling = "line_fraction",
      .off = 0,
      .tried_si = {1e6, 1e15},
      .source = knob_sources::kTimelyOurs},
     [](TimelySetting& s, double v) { s.start_rate = whole(v); }},
});
static_assert(sound(kTimelyKnobs));

inline TimelySetting::TimelySetting() { put_defaults(*this, kTimelyKnobs); }

inline TimelySetting TimelySetting::from_si(const double* v) {
  TimelySetting s;
  put_all(s, kTimelyKnobs, v);
  if (s.min_rtt < 1 || s.min_rate < 1 || s.beta > 1.0 || s.max_cut > 1.0 || s.weight > 1024) {
    throw std::invalid_argument(
        "NIC setting: expected timely_min_rtt and timely_min_rate above 0, timely_beta, "
        "timely_max_cut and timely_weight at most 1");
  }
  return s;
}

}  // namespace dcqcn
