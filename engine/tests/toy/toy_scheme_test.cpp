// A scheme that this library does not contain, added as CONTRIBUTING says, runs on the window
// engine and on the plain one with equal bytes, alone and beside DCQCN.
//
//   toy_scheme_test               the test
//   toy_scheme_test --play FILE   plays a job (tests/fuzz/job.hpp) and prints its totals and flows,
//                                 for comparison with ns-3
#include <cstring>

#include "model/settings/knob_tables.hpp"
#include "tests/check.hpp"
#include "tests/scheme_play.hpp"
#include "tests/worlds.hpp"

namespace dcqcn {
namespace {

using fuzz::Job;
using fuzz::Player;
using scheme_play::incast;
using scheme_play::nic_rows;
using scheme_play::Outcome;
using scheme_play::same_everywhere;

Job toy_job(const std::string& lines, const std::string& values = "2e-6 1e9",
            const std::string& pfc = worlds::kPfc) {
  const std::string rows = nic_rows("*", 2, values);
  return Job::parse(incast("scheme name=toy\n" + lines, pfc) + "seed 3\n" + rows +
                    "ecn * 20000 80000 0.5\napply\nrun 400000000\nreport\n" +
                    nic_rows("1,2", 2, "5e-6 3e9") + "apply\nrun 900000000\nreport\n");
}

void test_alone() {
  const Outcome o = same_everywhere(toy_job(""));
  CHECK_EQ(o.counters.size(), 3);
  for (const std::uint64_t n : o.counters) CHECK(n > 0);  // answers, cuts, pauses
  CHECK_EQ(o.trace.size(), o.counters[1]);
  CHECK(o.trace.front().rfind("toy cut ", 0) == 0);

  // its own knobs and its own option do something
  CHECK(same_everywhere(toy_job("", "9e-6 1e9")).digest != o.digest);
  CHECK(same_everywhere(toy_job("", "2e-6 5e9")).digest != o.digest);
  Job slow = toy_job("");
  for (std::string& line : slow.scenario) {
    if (line == "scheme name=toy") line += " pace=slow";
  }
  CHECK(same_everywhere(slow).digest != o.digest);
}

void test_other_transports() {
  for (const char* lines : {"wire payload=1000 data=48 ack=60 cnp=60 pfc=43 cnp_in_ack=1\n",
                            "cnp scope=qp delay_ps=3000000\n", "transport qp=pair ack_every=4\n"}) {
    same_everywhere(toy_job(lines));
  }
  same_everywhere(toy_job("transport qp=flow rto_ps=100000000\n", "2e-6 1e9",
                          "pfc enabled=0 lossless=3 alpha=0.05 reserve=4096 resume_offset=3072\n"));
}

// half of the NICs run DCQCN; the rows have DCQCN's width
void test_beside_dcqcn() {
  const std::string rows = nic_rows("0,1,2,3", scheme_knobs("dcqcn").nic.size(), "2e-6 1e9");
  const Job job =
      Job::parse(incast("scheme name=toy hosts=0,1,2,3\nscheme name=dcqcn mode=paper\n") +
                 "seed 3\n" + rows + "ecn * 20000 80000 0.5\napply\nrun 900000000\nreport\n");
  const Outcome o = same_everywhere(job);
  CHECK_EQ(o.counters.size(), 5);
  for (const std::uint64_t n : o.counters) CHECK(n > 0);
}

// random networks, lossy ones among them, with the toy instead of DCQCN
void test_random() {
  const std::vector<std::string> rows = {"7e-7 4e8", "3e-6 2e9", "1e-6 1e9"};
  std::uint64_t played = 0;
  for (std::uint64_t number = 0; number < 400 && played < 40; ++number) {
    played += scheme_play::play_random(77, number, "name=toy", rows);
  }
  CHECK_EQ(played, 40);
}

void refused(const std::string& lines, const std::string& part) {
  try {
    Player player(Job::parse(incast(lines) + "seed 1\n"), "window");
    CHECK(false);
  } catch (const std::invalid_argument& e) {
    CHECK(std::string(e.what()).find(part) != std::string::npos);
  }
}

void test_refusals() {
  std::string known;
  for (const SchemeKnobs& s : scheme_knobs())
    known += (known.empty() ? "" : ", ") + std::string(s.name);
  CHECK(known.rfind("dcqcn, ", 0) == 0);
  refused("scheme name=tou\n",
          "line 13 (scheme): unknown scheme 'tou'; did you mean 'toy'? (known: " + known + ")");
  refused("scheme name=toy mode=nic\n", "scheme toy has no option 'mode' (known: pace)");
  refused("scheme name=toy pace=quick\n",
          "pace=quick of scheme toy is unknown (known: fast, slow)");
  refused("scheme name=dcqcn mode=papr\n",
          "mode=papr of scheme dcqcn is unknown; did you mean 'paper'? (known: nic, paper)");
  refused("scheme name=toy\nscheme name=dcqcn\n", "a second scheme for all hosts");
  refused("scheme name=toy hosts=1,2\nscheme name=dcqcn hosts=2\n", "host 2 has a scheme already");
  refused("scheme name=toy hosts=9\n", "hosts = '9'; expected a whole number from 0 to 7");
}

}  // namespace
}  // namespace dcqcn

int main(int argc, char** argv) {
  using namespace dcqcn;
  if (argc == 3 && std::strcmp(argv[1], "--play") == 0) return scheme_play::play(argv[2]);
  test_alone();
  test_other_transports();
  test_beside_dcqcn();
  test_random();
  test_refusals();
  return check::result("toy_scheme");
}
