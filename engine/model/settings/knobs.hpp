// What a row of a knob table says. A scheme owns the rows of its NIC (schemes/*_knobs.hpp), the
// switch those of its marking (ecn_knobs.hpp). Everything else reads them: Python through
// dcqcn_gym._core, ns-3 as attributes, the fuzzer.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/units.hpp"

namespace dcqcn {

struct KnobUnit {
  const char* name;     // the device's unit
  double si_per_unit;   // one of it in SI
  const char* si_unit;  // "s", "bit/s", "B", or "1" for a plain number
};
inline constexpr KnobUnit kFlag{"flag", 1, "1"};
inline constexpr KnobUnit kMicroseconds{"us", 1e-6, "s"};
inline constexpr KnobUnit kMegabits{"Mb/s", 1e6, "bit/s"};
inline constexpr KnobUnit kKilobytes{"KB", 1e3, "B"};
inline constexpr KnobUnit kPercent{"%", 0.01, "1"};
inline constexpr KnobUnit kOf1024{"1/1024", 1.0 / 1024, "1"};

struct KnobRange {
  double low, high;
};

// Numbers are in the device's unit unless a name says otherwise.
struct KnobRow {
  const char* name;
  const char* group;  // rp_increase, rp_decrease, rp_alpha, np; ecn, pfc: knobs of the switch
  KnobUnit unit;
  double initial;   // the vendor's default
  KnobRange legal;  // what a person may set
  KnobRange tuned;  // what an action can reach
  double step;      // one step of a search
  int direction;    // +1: raising it favours throughput, -1: lowering it does
  const char* help;
  const char* mlxconfig = nullptr;  // names on devices, if they have one
  const char* debugfs = nullptr;
  const char* sonic = nullptr;
  bool integer = true;
  bool log = false;  // searched on a logarithmic scale
  bool tuned_by_default = false;
  // has a slot in the observation: such a row more or less, or another range, is another layout,
  // and policies have to be trained again
  bool observed = false;
  // how default, legal and tuned follow the line rate: "none"; "rate": in proportion to rate/100G;
  // "line_fraction": tuned and step are percent of the line rate
  const char* scaling = "none";
  std::optional<double> off = std::nullopt;  // means "off"; only an explicit setting reaches it
  double off_acts_like = 1.0;   // where a search that starts at "off" begins, of the tuned range
  KnobRange tried_si = {0, 0};  // what the fuzzer tries; {0, 0}: the legal range
  const char* source = "";      // where default and ranges come from

  constexpr bool is_ecn() const {
    return std::string_view(group) == "ecn" || std::string_view(group) == "pfc";
  }
  constexpr double initial_si() const { return initial * unit.si_per_unit; }
  constexpr KnobRange tried() const {
    if (tried_si.high > tried_si.low) return tried_si;
    return {legal.low * unit.si_per_unit, legal.high * unit.si_per_unit};
  }
};

// A row and what it sets in the setting of a scheme (or of a switch port), from an SI value.
template <class Setting>
struct Knob {
  KnobRow row;
  void (*put)(Setting& setting, double si);
};

inline std::int64_t whole(double x) { return static_cast<std::int64_t>(x + 0.5); }
inline Time picoseconds(double s) { return whole(s * 1e12); }

// true if every row sets something, no name stands twice, and actions see what they move
template <class Setting, std::size_t N>
constexpr bool sound(const std::array<Knob<Setting>, N>& knobs) {
  for (std::size_t i = 0; i < N; ++i) {
    const KnobRow& row = knobs[i].row;
#ifndef __SANITIZE_ADDRESS__  // with -fsanitize=undefined gcc takes no such address for a constant
    if (knobs[i].put == nullptr) return false;
#endif
    if (row.direction != 1 && row.direction != -1) return false;
    if (row.tuned_by_default && !row.observed) return false;
    for (std::size_t j = 0; j < i; ++j) {
      if (std::string_view(knobs[j].row.name) == row.name) return false;
    }
  }
  return true;
}

template <class Setting, std::size_t N>
std::vector<KnobRow> rows_of(const std::array<Knob<Setting>, N>& knobs) {
  std::vector<KnobRow> rows;
  rows.reserve(N);
  for (const Knob<Setting>& knob : knobs) rows.push_back(knob.row);
  return rows;
}

// a setting from SI values in the order of the rows; throws std::invalid_argument naming the knob
template <class Setting, std::size_t N>
void put_all(Setting& setting, const std::array<Knob<Setting>, N>& knobs, const double* si) {
  for (std::size_t i = 0; i < N; ++i) {
    if (!(si[i] >= 0.0 && si[i] < 4e18)) {
      throw std::invalid_argument(std::string(knobs[i].row.name) +
                                  " must be a number at or above 0");
    }
    knobs[i].put(setting, si[i]);
  }
}

template <class Setting, std::size_t N>
void put_defaults(Setting& setting, const std::array<Knob<Setting>, N>& knobs) {
  for (const Knob<Setting>& knob : knobs) knob.put(setting, knob.row.initial_si());
}

}  // namespace dcqcn
