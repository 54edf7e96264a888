// A scheme that this library does not contain, added as CONTRIBUTING says, runs on the window
// engine and on the plain one with equal bytes, alone and beside DCQCN.
//
//   toy_scheme_test               the test
//   toy_scheme_test --play FILE   plays a job (tests/fuzz/job.hpp) and prints its totals and flows,
//                                 for comparison with ns-3
#include <cstring>
#include <fstream>
#include <sstream>

#include "model/knob_tables.hpp"
#include "model/nic_schemes.hpp"
#include "tests/check.hpp"
#include "tests/fuzz/random_job.hpp"
#include "tests/fuzz/report_fields.hpp"
#include "tests/worlds.hpp"

namespace dcqcn {
namespace {

using fuzz::Fields;
using fuzz::Job;
using fuzz::Player;

// what one engine makes of a job
struct Outcome {
  std::uint64_t digest = 0;
  std::uint64_t hops = 0;
  std::vector<std::uint64_t> counters;
  std::vector<std::string> trace;

  bool operator==(const Outcome&) const = default;
};

std::string told(const SchemeNames& names, const SchemeEvent& e) {
  std::ostringstream out;
  out.precision(17);
  out << names.name << ' ' << names.events[e.what] << ' ' << e.when << ' ' << e.src << ' ' << e.dst;
  for (const double v : e.values) out << ' ' << v;
  return out.str();
}

Outcome outcome(const Job& job, const std::string& engine, int splits = 0) {
  Outcome o;
  Player player(job, engine, splits);
  NicSchemes& schemes = player.simulation().schemes();
  schemes.trace(true);
  for (const std::string& line : job.script) {
    if (!player.play(line)) continue;
    o.digest = Fields(player.report()).digest(o.digest);
    std::size_t at = 0;
    for (const SchemeReport& scheme : player.report().schemes) {
      for (const std::uint64_t n : scheme.counters) {
        if (o.counters.size() <= at) o.counters.push_back(0);
        o.counters[at++] += n;
      }
    }
  }
  for (const auto& [names, events] : schemes.take_trace()) {
    for (const SchemeEvent& e : events) o.trace.push_back(told(*names, e));
  }
  o.hops = player.simulation().totals().hops;
  return o;
}

// the window engine's outcome, which the other engines have to share
Outcome same_everywhere(const Job& job) {
  const Outcome window = outcome(job, "window");
  CHECK(window == outcome(job, "event"));
  CHECK(window == outcome(job, "window:300000", 3));
  return window;
}

// Six hosts send to one; 100 Gb/s, a shallow buffer, so that there are marks and pauses.
std::string incast(const std::string& lines, const std::string& pfc = worlds::kPfc) {
  std::string text = "dcqcn-gym-scenario 1\nnodes hosts=8 switches=1\nswitch 8 buffer=2000000\n";
  for (int h = 0; h < 8; ++h) {
    text += "link " + std::to_string(h) + " 8 ps_per_byte=80 delay_ps=1000000 headroom=60000\n";
  }
  return text + pfc + lines +
         "workload incast hosts=1,2,3,4,5,6 dst=0 bytes=300000 off_ps=10000000\n"
         "workload permutation hosts=0,1,2,3,4,5,6,7 bytes=200000\nend\n";
}

// `nic` lines for hosts that run the toy, in rows of `columns` values
std::string toy_rows(const std::string& hosts, std::size_t columns, const std::string& values) {
  std::string out;
  std::istringstream in(hosts);
  for (std::string host; std::getline(in, host, ',');) {
    out += "nic " + host + " " + values;
    for (std::size_t i = 2; i < columns; ++i) out += " 0";
    out += "\n";
  }
  return out;
}

Job toy_job(const std::string& lines, const std::string& values = "2e-6 1e9",
            const std::string& pfc = worlds::kPfc) {
  const std::string rows = toy_rows("*", 2, values);
  return Job::parse(incast("scheme name=toy\n" + lines, pfc) + "seed 3\n" + rows +
                    "ecn * 20000 80000 0.5\napply\nrun 400000000\nreport\n" +
                    toy_rows("1,2", 2, "5e-6 3e9") + "apply\nrun 900000000\nreport\n");
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
  const std::string rows = toy_rows("0,1,2,3", scheme_knobs("dcqcn").nic.size(), "2e-6 1e9");
  const Job job =
      Job::parse(incast("scheme name=toy hosts=0,1,2,3\nscheme name=dcqcn mode=paper\n") +
                 "seed 3\n" + rows + "ecn * 20000 80000 0.5\napply\nrun 900000000\nreport\n");
  const Outcome o = same_everywhere(job);
  CHECK_EQ(o.counters.size(), 5);
  for (const std::uint64_t n : o.counters) CHECK(n > 0);
}

// random networks, lossy ones among them, with the toy instead of DCQCN
void test_random() {
  int played = 0;
  for (std::uint64_t number = 0; played < 40; ++number) {
    Job job = fuzz::random_job(77, number);
    job.scenario.insert(job.scenario.begin() + 2, "scheme name=toy");
    for (std::string& line : job.scenario) {
      if (const auto at = line.find("rp="); at != std::string::npos) {
        line.erase(at, line.find(' ', at) - at);
      }
    }
    for (std::string& line : job.script) {
      if (line.rfind("nic ", 0) == 0) {
        line = line.substr(0, line.find(' ', 4)) + (number % 2 ? " 3e-6 2e9" : " 7e-7 4e8");
      }
    }
    job.script.insert(job.script.begin() + 1, "nic * 1e-6 1e9");
    try {
      same_everywhere(job);
      ++played;
    } catch (const std::invalid_argument&) {
      // a job that the parser refuses
    }
  }
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
  refused("scheme name=tou\n",
          "line 13 (scheme): unknown scheme 'tou'; did you mean 'toy'? (known: dcqcn, toy)");
  refused("scheme name=toy mode=nic\n", "scheme toy has no option 'mode' (known: pace)");
  refused("scheme name=toy pace=quick\n",
          "pace=quick of scheme toy is unknown (known: fast, slow)");
  refused("scheme name=dcqcn mode=papr\n",
          "mode=papr of scheme dcqcn is unknown; did you mean 'paper'? (known: nic, paper)");
  refused("transport rp=timely\n", "unknown rp 'timely' (known: nic, paper)");
  refused("scheme name=toy\nscheme name=dcqcn\n", "a second scheme for all hosts");
  refused("scheme name=toy hosts=1,2\nscheme name=dcqcn hosts=2\n", "host 2 has a scheme already");
  refused("scheme name=toy hosts=9\n", "hosts = '9'; expected a whole number from 0 to 7");
}

int play(const char* file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  const Job job = Job::parse(text.str());
  Player player(job, "window");
  for (const std::string& line : job.script) {
    if (!player.play(line)) continue;
    for (const FinishedFlow& f : player.report().log.finished) {
      std::printf("flow %d %d %lld %lld %lld\n", f.src, f.dst, static_cast<long long>(f.bytes),
                  static_cast<long long>(f.start), static_cast<long long>(f.fct));
    }
  }
  const Totals& t = player.simulation().totals();
  const std::pair<const char*, std::uint64_t> totals[] = {
      {"cnps", t.cnps}, {"marks", t.marks},      {"pauses", t.pauses},
      {"acks", t.acks}, {"packet_hops", t.hops}, {"data_packets", t.data_packets}};
  for (const auto& [name, n] : totals) {
    std::printf("total %s %llu\n", name, static_cast<unsigned long long>(n));
  }
  return 0;
}

}  // namespace
}  // namespace dcqcn

int main(int argc, char** argv) {
  using namespace dcqcn;
  if (argc == 3 && std::strcmp(argv[1], "--play") == 0) return play(argv[2]);
  test_alone();
  test_other_transports();
  test_beside_dcqcn();
  test_random();
  test_refusals();
  return check::result("toy_scheme");
}
