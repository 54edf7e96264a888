#include "model/monitors/flow_states.hpp"

#include <string>

#include "check.hpp"
#include "model/base/det_math.hpp"

namespace {

using dcqcn::FlowStateConfig;
using dcqcn::FlowStates;
using State = dcqcn::FlowState;

constexpr dcqcn::Time kMs = 1'000'000'000;

FlowStateConfig paper() {
  FlowStateConfig config;
  config.tau = 1'000'000;
  config.delta = 3;
  return config;
}

char letter(State state) {
  switch (state) {
    case State::kElephant:
      return 'E';
    case State::kPotential:
      return 'P';
    case State::kMouse:
      return 'M';
    case State::kUnseen:
      break;
  }
  return '-';
}

// PARALEON (ICNP 2024) Fig. 4: delta 3, tau 1 MB, KB per interval and the state of each interval;
// '-' where the flow sent nothing. Phi is cumulative: f2 turns E at 1046 KB in all.
void figure_4_interval_by_interval() {
  struct Row {
    int kb[8];
    const char* states;
  };
  const Row rows[3] = {{{1200, 2500, 1100, 0, 0, 0, 0, 0}, "EEE-----"},
                       {{25, 28, 33, 100, 216, 221, 423, 530}, "MMPPPPEE"},
                       {{27, 19, 13, 12, 12, 6, 4, 0}, "MMPPPPP-"}};
  FlowStates states(paper());
  for (int i = 0; i < 8; ++i) {
    for (unsigned f = 0; f < 3; ++f) {
      char seen = '-';
      if (rows[f].kb[i] > 0) {
        const auto bytes = static_cast<std::uint64_t>(rows[f].kb[i]) * 1000;
        seen = letter(states.observe(f + 1, bytes, (i + 1) * kMs).state);
      }
      if (!CHECK(seen == rows[f].states[i]))
        std::printf("    f%u at MI%d: %c, expected %c\n", f + 1, i + 1, seen, rows[f].states[i]);
    }
    states.end_interval();
  }
  CHECK_EQ(states.peak_tracked(), 3);
}

void elephants_start_at_tau_exactly() {
  FlowStates states(paper());
  CHECK(states.observe(1, 999'999, kMs).state == State::kMouse);
  CHECK(states.observe(2, 1'000'000, kMs).state == State::kElephant);
  states.end_interval();
  CHECK(states.observe(1, 1, 2 * kMs).state == State::kElephant);
}

void idle_flows_are_forgotten_after_delta() {
  FlowStates states(paper());
  states.observe(7, 600'000, kMs);
  states.end_interval();
  for (int i = 0; i < 2; ++i) states.end_interval();  // two idle intervals: still known
  auto seen = states.observe(7, 300'000, 4 * kMs);
  CHECK(seen.state == State::kMouse && seen.phi == 900'000);
  states.end_interval();
  for (int i = 0; i < 3; ++i) states.end_interval();  // three: forgotten
  CHECK_EQ(states.tracked(), 0);
  seen = states.observe(7, 300'000, 8 * kMs);
  CHECK(seen.state == State::kMouse && seen.phi == 300'000);
}

void a_pause_does_not_undo_activity() {
  FlowStates states(paper());
  states.observe(7, 1000, kMs);
  states.end_interval();
  states.observe(7, 1000, 2 * kMs);
  states.end_interval();
  states.end_interval();
  CHECK(states.observe(7, 1000, 4 * kMs).state == State::kPotential);
}

void delta_one_knows_no_mice() {
  FlowStateConfig config = paper();
  config.delta = 1;
  FlowStates states(config);
  CHECK(states.observe(1, 10, kMs).state == State::kPotential);
  states.end_interval();
  states.end_interval();
  CHECK_EQ(states.tracked(), 0);
}

void weights_of_potential_elephants() {
  FlowStateConfig config = paper();
  FlowStates ratio(config);
  config.weight = dcqcn::PeWeight::kLogistic;
  FlowStates logistic(config);
  config.weight = dcqcn::PeWeight::kSurvival;
  config.sizes = {{0, 0.0}, {500'000, 0.5}, {1'000'000, 0.9}, {2'000'000, 1.0}};
  FlowStates survival(config);
  const double ages[6] = {0, 0, .5, 0.7310585786300049, 0.8807970779778823, 0.9525741268224334};
  for (int i = 0; i < 6; ++i) {
    const dcqcn::Time now = (i + 1) * kMs;
    const auto r = ratio.observe(1, 100'000, now);
    const auto l = logistic.observe(1, 100'000, now);
    const auto s = survival.observe(1, 100'000, now);
    const double phi = (i + 1) * 100'000.0;
    CHECK(r.state == (i < 2 ? State::kMouse : State::kPotential));
    CHECK_BETWEEN(r.elephant_share, i < 2 ? 0 : phi / 1e6 - 1e-12, i < 2 ? 0 : phi / 1e6 + 1e-12);
    CHECK_BETWEEN(l.elephant_share, ages[i] - 1e-12, ages[i] + 1e-12);
    const double cdf = phi <= 500'000 ? phi / 1e6 : 0.5 + 0.4 * (phi - 5e5) / 5e5;
    const double p = i < 2 ? 0.0 : 0.1 / (1.0 - cdf);
    CHECK_BETWEEN(s.elephant_share, p - 1e-12, p + 1e-12);
    ratio.end_interval();
    logistic.end_interval();
    survival.end_interval();
  }
}

void survival_at_the_edges() {
  const std::vector<dcqcn::SizePoint> step = {{100, 0.0}, {1000, 0.6}, {1000, 1.0}};
  // tau on a step: P(size >= 1000) keeps the step's mass
  CHECK_BETWEEN(dcqcn::survival_weight(step, 1000, 50), 0.4 - 1e-12, 0.4 + 1e-12);
  CHECK_EQ(dcqcn::survival_weight(step, 1000, 1500), 1.0);  // beyond the table: the ratio rule
  CHECK_EQ(dcqcn::survival_weight({}, 1000, 250), 0.25);
  CHECK_EQ(dcqcn::survival_weight(step, 10, 50), 1.0);
}

void memory_is_bounded() {
  FlowStateConfig config = paper();
  config.max_flows = 100;
  FlowStates states(config);
  for (std::uint32_t key = 1; key <= 150; ++key) states.observe(key, 1000, kMs);
  CHECK_EQ(states.tracked(), 100);
  CHECK_EQ(states.untracked(), 50);
  CHECK(states.observe(1000, 2'000'000, kMs).state == State::kElephant);
  CHECK_EQ(states.peak_bytes(), 100 * 40);
  for (int i = 0; i < 4; ++i) states.end_interval();
  CHECK_EQ(states.tracked(), 0);
  CHECK_EQ(states.peak_tracked(), 100);
}

// against a plain array as history: thousands of flows that come, pause and go
void agrees_with_a_plain_model() {
  struct Plain {
    std::uint64_t phi = 0;
    std::uint32_t active = 0;
    int last = -100;
  };
  constexpr int kFlows = 5000;
  std::vector<Plain> plain(kFlows);
  FlowStates states(paper());
  std::uint64_t random = 1;
  for (int interval = 0; interval < 60; ++interval) {
    for (std::uint32_t f = 0; f < kFlows; ++f) {
      random = random * 6364136223846793005ULL + 1442695040888963407ULL;
      if ((random >> 40) % 4 != 0) continue;
      const std::uint64_t bytes = 1 + (random >> 33) % 300'000;
      Plain& p = plain[f];
      if (interval - p.last > 3) p = {};
      p.phi += bytes;
      p.active += 1;
      p.last = interval;
      const State expected = p.phi >= 1'000'000 ? State::kElephant
                             : p.active >= 3    ? State::kPotential
                                                : State::kMouse;
      const auto seen = states.observe(f * 2654435761u + 1, bytes, interval * kMs);
      CHECK(seen.state == expected && seen.phi == p.phi);
    }
    states.end_interval();
  }
}

}  // namespace

int main() {
  figure_4_interval_by_interval();
  elephants_start_at_tau_exactly();
  idle_flows_are_forgotten_after_delta();
  a_pause_does_not_undo_activity();
  delta_one_knows_no_mice();
  weights_of_potential_elephants();
  survival_at_the_edges();
  memory_is_bounded();
  agrees_with_a_plain_model();
  return dcqcn::check::result("flow_states");
}
