// The schemes of this library run on the window engine and on the plain one with
// equal bytes, alone, beside DCQCN and on random networks; and each does what it is for.
//
//   builtin_schemes_test     the test
//   builtin_schemes_test N   N random jobs of each case
#include <cstdlib>
#include <map>

#include "model/settings/knob_tables.hpp"
#include "tests/check.hpp"
#include "tests/scheme_play.hpp"
#include "tests/worlds.hpp"

namespace dcqcn {
namespace {

using fuzz::Job;
using scheme_play::incast;
using scheme_play::nic_rows;
using scheme_play::Outcome;
using scheme_play::same_everywhere;

// a NIC's row: SI values of the scheme's knobs, defaults but for these
std::string row_of(const std::string& scheme, const std::map<std::string, std::string>& changes) {
  std::string out;
  std::size_t used = 0;
  for (const KnobRow& row : scheme_knobs(scheme).nic) {
    const auto at = changes.find(row.name);
    char value[40];
    std::snprintf(value, sizeof value, "%.17g", row.initial_si());
    out += (out.empty() ? "" : " ") + (at == changes.end() ? value : at->second);
    used += at != changes.end();
  }
  CHECK_EQ(used, changes.size());
  return out;
}

// a scheme with settings under which the small networks here show what it does
struct Case {
  std::string line;
  std::string scheme;
  std::map<std::string, std::string> first, second;
};

std::vector<Case> cases() {
  const std::map<std::string, std::string> timely = {{"timely_t_low", "8e-6"},
                                                     {"timely_t_high", "60e-6"},
                                                     {"timely_min_rtt", "4e-6"},
                                                     {"timely_segment", "4"},
                                                     {"timely_step", "1e9"}};
  const std::map<std::string, std::string> dolce = {{"dolce_time_reset", "20e-6"},
                                                    {"dolce_byte_reset", "50000"},
                                                    {"dolce_threshold", "1"},
                                                    {"dolce_ai_rate", "1e9"}};
  const std::map<std::string, std::string> quick = {{"dolce_gamma", "0.95"},
                                                    {"dolce_epsilon", "0.2"},
                                                    {"dolce_qualified", "2"},
                                                    {"dolce_cnp_gap", "4e-6"},
                                                    {"dolce_idle_reset", "30e-6"}};
  const std::map<std::string, std::string> plus = {
      {"dolce_arms", "3"}, {"dolce_message", "5000"}, {"dolce_epsilon", "0.3"}};
  // timers that run out during the short pauses here; then those that follow tau
  const std::map<std::string, std::string> held = {{"plus_timer", "1e-6"},
                                                   {"plus_cut", "0.1"},
                                                   {"plus_min_cnp_gap", "4e-6"},
                                                   {"plus_list_time", "50e-6"}};
  return {
      {"name=dcqcn mode=nic", "dcqcn", {}, {{"rp_min_dec_fac", "0.9"}}},
      {"name=dcqcn mode=paper", "dcqcn", {}, {{"rp_min_dec_fac", "0.9"}}},
      {"name=dcqcn-plus", "dcqcn-plus", held, {{"plus_adapt_above", "1e-6"}, {"plus_cut", "0.9"}}},
      {"name=timely", "timely", timely, {{"timely_max_cut", "0.9"}, {"timely_t_low", "1e-6"}}},
      {"name=dolce-rc", "dolce-rc", dolce, quick},
      {"name=dolce-rc ratio=count memory=qp", "dolce-rc", dolce, quick},
      {"name=dolce-rc ratio=count arithmetic=fixed", "dolce-rc", dolce, quick},
      {"name=dolce-rc-plus", "dolce-rc-plus", {}, plus},
      {"name=dolce-rc-plus memory=qp", "dolce-rc-plus", plus, {}}};
}

Job job_of(const Case& c, const std::string& lines, const std::string& pfc = worlds::kPfc) {
  const std::string rest = "ecn * 20000 80000 0.5\napply\nrun 400000000\nreport\n";
  return Job::parse(incast("scheme " + c.line + "\n" + lines, pfc) + "seed 3\n" +
                    nic_rows("*", 1, row_of(c.scheme, c.first)) + rest +
                    nic_rows("1,2", 1, row_of(c.scheme, c.second)) +
                    "apply\nrun 900000000\nreport\n");
}

void test_alone(const Case& c) {
  const Outcome o = same_everywhere(job_of(c, ""));
  const SchemeKnobs& table = scheme_knobs(c.scheme);
  // every counter counts; Dolce-RC+ has one for each arm that there may be
  const std::size_t arms = c.scheme == "dolce-rc-plus" ? 7 : o.counters.size();
  for (std::size_t i = 0; i < arms; ++i) CHECK(o.counters[i] > 0);
  CHECK(!o.trace.empty());
  CHECK(o.trace.front().rfind(table.name, 0) == 0);
  // the settings are read
  Case other = c;
  std::swap(other.first, other.second);
  CHECK(same_everywhere(job_of(other, "")).digest != o.digest);
}

// options of a scheme make another run
void test_options() {
  const std::vector<Case> all = cases();
  std::vector<std::uint64_t> digests;
  for (const Case& c : all) {
    if (c.scheme == "dolce-rc") digests.push_back(same_everywhere(job_of(c, "")).digest);
  }
  CHECK(digests[0] != digests[1] && digests[1] != digests[2] && digests[0] != digests[2]);
}

void test_other_transports(const Case& c) {
  for (const char* lines : {"wire payload=1000 data=48 ack=60 cnp=60 pfc=43 cnp_in_ack=1\n",
                            "cnp scope=port delay_ps=3000000 port_gap_ps=500000\n",
                            "transport qp=pair ack_every=4\n"}) {
    same_everywhere(job_of(c, lines));
  }
  const std::string lossy = "pfc enabled=0 lossless=3 alpha=0.05 reserve=4096 resume_offset=3072\n";
  same_everywhere(job_of(c, "transport qp=flow rto_ps=100000000\n", lossy));
}

// half of the NICs run DCQCN; the rows have the width of the wider scheme
void test_beside_dcqcn(const Case& c) {
  const std::size_t columns =
      std::max(scheme_knobs("dcqcn").nic.size(), scheme_knobs(c.scheme).nic.size());
  const std::string dcqcn_row = row_of("dcqcn", {});
  const Job job =
      Job::parse(incast("scheme " + c.line + " hosts=0,1,2,3\nscheme name=dcqcn mode=paper\n") +
                 "seed 3\n" + nic_rows("0,1,2,3", columns, row_of(c.scheme, c.first)) +
                 nic_rows("4,5,6,7", columns, dcqcn_row) +
                 "ecn * 20000 80000 0.5\napply\nrun 900000000\nreport\n");
  CHECK(!same_everywhere(job).trace.empty());
}

void test_random(const Case& c, std::uint64_t jobs) {
  const std::vector<std::string> rows = {row_of(c.scheme, c.first), row_of(c.scheme, c.second),
                                         row_of(c.scheme, {})};
  std::uint64_t played = 0;
  for (std::uint64_t number = 0; number < 10 * jobs && played < jobs; ++number) {
    played += scheme_play::play_random(91, number, c.line, rows);
  }
  CHECK_EQ(played, jobs);
}

// a reward is a share, of messages too whose bits in picoseconds need more than 64 bits
void test_rewards_of_large_messages() {
  const std::string row = row_of("dolce-rc-plus", {{"dolce_message", "1200000"}});
  const Outcome o = same_everywhere(Job::parse(
      worlds::one_switch(2, worlds::kPfc + "scheme name=dolce-rc-plus\nworkload flows\n" +
                                "flow 0 1 20000000 0\n") +
      "seed 1\n" + nic_rows("*", 1, row) + "apply\nrun 40000000000\nreport\n"));
  CHECK_EQ(o.trace.size(), 17);
  for (const std::string& line : o.trace) {  // name, event, time, two hosts; the reward is 4th of 5
    std::istringstream in(line);
    std::string word;
    double rate = 0, time = 0, marked = 0, reward = -1;
    in >> word >> word >> word >> word >> word >> rate >> time >> marked >> reward;
    CHECK_BETWEEN(reward, 0.01, 1);
  }
}

}  // namespace
}  // namespace dcqcn

int main(int argc, char** argv) {
  using namespace dcqcn;
  const std::uint64_t jobs = argc == 2 ? std::strtoull(argv[1], nullptr, 10) : 6;
  for (const Case& c : cases()) {
    if (argc < 2) {
      test_alone(c);
      test_other_transports(c);
      test_beside_dcqcn(c);
    }
    test_random(c, jobs);
  }
  if (argc < 2) {
    test_options();
    test_rewards_of_large_messages();
  }
  return check::result("builtin_schemes");
}
