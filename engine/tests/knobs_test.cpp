// The rows of the knob tables and what each of them sets.
#include <cmath>

#include "check.hpp"
#include "model/fabric/ecn_knobs.hpp"
#include "model/schemes/dcqcn_knobs.hpp"
#include "model/settings/knob_tables.hpp"

namespace dcqcn {
namespace {

std::vector<double> initial_si(std::span<const KnobRow> rows) {
  std::vector<double> values;
  for (const KnobRow& row : rows) values.push_back(row.initial_si());
  return values;
}

std::vector<double> members(const NicSetting& s) {
  const auto real = [](auto x) { return static_cast<double>(x); };
  return {real(s.clamp_target),
          real(s.clamp_target_after_time),
          real(s.time_reset),
          real(s.byte_reset),
          real(s.threshold),
          real(s.max_rate),
          real(s.ai_rate),
          real(s.hai_rate),
          s.gd,
          s.min_dec_fac,
          real(s.min_rate),
          real(s.first_cnp_rate),
          real(s.reduce_period),
          s.g,
          real(s.alpha_period),
          s.initial_alpha,
          real(s.cnp_gap)};
}

// NVIDIA's defaults in engine units: ps, bytes, bit/s
void test_nic_defaults() {
  const std::vector<double> expected = {0,   1,   3e8, 2097088, 1,    0,   5e6,  5e7, 2048,
                                        0.5, 1e6, 0,   4e6,     1019, 1e6, 1023, 4e6};
  CHECK(members(NicSetting{}) == expected);
  CHECK(members(NicSetting::from_si(initial_si(scheme_knobs("dcqcn").nic).data())) == expected);
  CHECK_EQ(NicSetting{}.decay->power(2), 1019.0 / 1024.0 * (1019.0 / 1024.0));
}

void test_ecn_defaults() {
  const EcnSetting e;
  CHECK_EQ(e.kmin, 400'000);
  CHECK_EQ(e.kmax, 1'600'000);
  CHECK_EQ(e.pmax, 0.2);
  CHECK_EQ(e.slope, 0.2 / 1'200'000.0);
  const EcnSetting same = EcnSetting::from_si(initial_si(ecn_knobs()).data());
  CHECK(same.kmin == e.kmin && same.kmax == e.kmax && same.pmax == e.pmax);
}

// every row moves one member, and no two rows the same one
void test_every_row_sets_a_member_of_its_own() {
  const std::vector<KnobRow>& rows = scheme_knobs("dcqcn").nic;
  const std::vector<double> before = members(NicSetting{});
  CHECK_EQ(rows.size(), before.size());
  std::vector<int> moved(before.size(), 0);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<double> si = initial_si(rows);
    const double high = std::min(rows[i].legal.high, 131071.0) * rows[i].unit.si_per_unit;
    si[i] = high == si[i] ? rows[i].legal.low * rows[i].unit.si_per_unit : high;
    const std::vector<double> after = members(NicSetting::from_si(si.data()));
    for (std::size_t k = 0; k < after.size(); ++k) moved[k] += after[k] != before[k];
  }
  for (const int times : moved) CHECK_EQ(times, 1);
}

std::string refusal(std::vector<double> si, std::size_t at, double value) {
  si[at] = value;
  try {
    NicSetting::from_si(si.data());
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

void test_a_bad_value_names_its_knob() {
  const std::vector<double> si = initial_si(scheme_knobs("dcqcn").nic);
  const std::string number = " must be a number at or above 0";
  CHECK(refusal(si, 6, -1) == "NIC setting: rp_ai_rate" + number);
  CHECK(refusal(si, 16, std::nan("")) == "NIC setting: np_min_time_between_cnps" + number);
  CHECK(refusal(si, 3, 4e18) == "NIC setting: rp_byte_reset" + number);
  CHECK(refusal(si, 2, 0) == "NIC setting: timers and rp_min_rate must be above 0");
  CHECK(refusal(si, 2, 1e-12).empty());
}

constexpr Knob<NicSetting> row(const char* name, bool tuned, bool observed, int direction = 1) {
  return {{.name = name,
           .group = "np",
           .unit = kFlag,
           .initial = 0,
           .legal = {0, 1},
           .tuned = {0, 1},
           .step = 1,
           .direction = direction,
           .help = "",
           .tuned_by_default = tuned,
           .observed = observed},
          [](NicSetting&, double) {}};
}

// what the static_asserts of the row files refuse
void test_unsound_tables() {
  using Two = std::array<Knob<NicSetting>, 2>;
  static_assert(sound(Two{row("a", false, false), row("b", true, true)}));
  static_assert(!sound(Two{row("a", false, false), row("a", true, true)}));
  static_assert(!sound(Two{row("a", false, false), row("b", true, false)}));
  static_assert(!sound(Two{row("a", false, false), row("b", true, true, 0)}));
#ifndef __SANITIZE_ADDRESS__  // see sound()
  static_assert(
      !sound(Two{row("a", false, false), Knob<NicSetting>{row("b", true, true).row, nullptr}}));
#endif
}

struct Toy {
  Time gap;
  double share;
};
constexpr auto kToyKnobs = std::to_array<Knob<Toy>>({
    {{.name = "toy_gap",
      .group = "np",
      .unit = kMicroseconds,
      .initial = 5,
      .legal = {0, 100},
      .tuned = {1, 50},
      .step = 5,
      .direction = 1,
      .help = ""},
     [](Toy& s, double v) { s.gap = picoseconds(v); }},
    {{.name = "toy_share",
      .group = "np",
      .unit = kPercent,
      .initial = 25,
      .legal = {0, 100},
      .tuned = {1, 50},
      .step = 5,
      .direction = 1,
      .help = "",
      .tried_si = {0.1, 0.2}},
     [](Toy& s, double v) { s.share = v; }},
});

// what a scheme of one's own needs of a row: a default, a meaning, what the fuzzer tries
void test_rows_of_another_setting() {
  static_assert(sound(kToyKnobs));
  Toy toy;
  put_defaults(toy, kToyKnobs);
  CHECK(toy.gap == 5'000'000 && toy.share == 0.25);
  const double si[] = {7e-6, 0.5};
  put_all(toy, kToyKnobs, si);
  CHECK(toy.gap == 7'000'000 && toy.share == 0.5);
  const std::vector<KnobRow> rows = rows_of(kToyKnobs);
  CHECK_EQ(rows[0].tried().high, 100 * 1e-6);
  CHECK_EQ(rows[1].tried().low, 0.1);
  CHECK(rows.size() == 2 && !rows[0].is_ecn());
}

void test_schemes_are_found_by_name() {
  CHECK(std::string(scheme_knobs().front().name) == "dcqcn");
  std::string said;
  try {
    scheme_knobs("dcqn");
  } catch (const std::invalid_argument& error) {
    said = error.what();
  }
  CHECK(said.find("unknown scheme 'dcqn' (known: dcqcn") == 0);
}

}  // namespace
}  // namespace dcqcn

int main() {
  dcqcn::test_nic_defaults();
  dcqcn::test_ecn_defaults();
  dcqcn::test_every_row_sets_a_member_of_its_own();
  dcqcn::test_a_bad_value_names_its_knob();
  dcqcn::test_unsound_tables();
  dcqcn::test_rows_of_another_setting();
  dcqcn::test_schemes_are_found_by_name();
  return dcqcn::check::result("knobs_test");
}
