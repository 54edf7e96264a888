// Jobs by hand, to the picosecond: what each node costs, where it is known, loops, admission, and
// graphs that cannot be carried out.
#include "model/jobs/job.hpp"

#include <stdexcept>

#include "sim/simulation.hpp"
#include "tests/check.hpp"
#include "tests/worlds.hpp"

namespace dcqcn {
namespace {

constexpr Time kDelay = 5'000'000;   // of a link, two of them between hosts
constexpr Time kFrame = 1062 * 80;   // 1000 B, on one link
constexpr Time kAck = 66 * 80;       // likewise
constexpr Time kNvlink = 1'000'000;  // between hosts 0 and 1, 2 and 3
constexpr Time kArrives = 2 * (kFrame + kDelay);
constexpr Time kReturns = 2 * (kAck + kDelay);

std::string job_of(const std::string& keys, const std::string& nodes) {
  const std::string once = keys.find("rounds") == std::string::npos ? " rounds=1 " : " ";
  const std::string servers = "servers gpus=2 rate_bps=800000000000 delay_ps=1000000\n";
  return worlds::one_switch(4, servers + "workload job hosts=0,1,2,3" + once + keys + "\n" + nodes);
}

// what a job has reported when it is over, without its rounds; the same of both engines
std::vector<JobSpan> spans_of(const std::string& compiled, std::vector<Time>* rounds = nullptr) {
  std::vector<JobSpan> found[2];
  for (int e = 0; e < 2; ++e) {
    Simulation sim(compiled, 1, e == 0 ? "window" : "event");
    for (int i = 0; i < 50 && !sim.done(); ++i) sim.advance(sim.now() + 20'000'000);
    CHECK(sim.done());
    for (const JobSpan& s : sim.report().log.job_spans) {
      if (s.host >= 0) found[e].push_back(s);
      if (s.host < 0 && e == 0 && rounds != nullptr) rounds->push_back(s.end);
    }
  }
  CHECK_EQ(found[0].size(), found[1].size());
  for (std::size_t i = 0; i < found[0].size() && i < found[1].size(); ++i) {
    CHECK(found[0][i].end == found[1][i].end && found[0][i].host == found[1][i].host &&
          found[0][i].label == found[1][i].label);
  }
  return found[0];
}

Time end_of(const std::vector<JobSpan>& spans, std::uint32_t label, int host) {
  Time end = -1;
  for (const JobSpan& s : spans) {
    if (s.label == label && s.host == host) end = s.end;
  }
  return end;
}

void test_where_and_when_a_transfer_is_done() {
  const auto spans = spans_of(job_of("start_ps=700",
                                     "node transfer 0 2 1000 label=1\n"
                                     "node delay 2 2 5 after=0 label=2\n"  // at its receiver
                                     "node delay 0 0 5 after=0 label=3\n"  // at its sender
                                     "node delay 3 3 5 after=0 label=4\n"  // elsewhere
                                     "node delay 3 3 7 after=3,1 label=5\n"));
  const Time there = 700 + kArrives;
  CHECK_EQ(end_of(spans, 1, 0), there);
  CHECK_EQ(end_of(spans, 1, 2), there);
  CHECK_EQ(end_of(spans, 2, 2), there + 5);
  CHECK_EQ(end_of(spans, 3, 0), there + kReturns + 5);
  CHECK_EQ(end_of(spans, 4, 3), there + kNvlink + 5);  // the smallest delay of any link
  CHECK_EQ(end_of(spans, 5, 3), there + 5 + kNvlink + 7);
}

void test_inside_a_server() {
  // 100 B take 1000 ps; both leave host 0 one after the other, the last two meet at host 1
  const auto spans = spans_of(job_of("",
                                     "node local 0 1 100 label=1\n"
                                     "node local 0 1 300 label=2\n"
                                     "node delay 0 0 100 label=3\n"
                                     "node local 0 1 50 after=2 label=4\n"
                                     "node transfer 1 2 1 after=0,1,3 label=5\n"));
  CHECK_EQ(end_of(spans, 1, 1), kNvlink + 1000);
  CHECK_EQ(end_of(spans, 2, 1), kNvlink + 4000);
  CHECK_EQ(end_of(spans, 4, 1), kNvlink + 4500);
  CHECK_EQ(end_of(spans, 5, 2), kNvlink + 4500 + 2 * (63 * 80 + kDelay));
}

void test_loops() {
  std::vector<Time> rounds;
  const auto spans = spans_of(job_of("",
                                     "node join 0 0 0\n"
                                     "node delay 0 0 10 after=0 label=1\n"
                                     "node join 0 0 0 after=1\n"
                                     "node delay 0 0 1 after=2\n"
                                     "node repeat 0 0 3 after=3 begin=2\n"
                                     "node delay 0 0 100 after=4\n"
                                     "node repeat 0 0 2 after=5 label=2 begin=0\n"),
                              &rounds);
  CHECK_EQ(spans.size(), 3);  // two times label 1, once label 2
  CHECK_EQ(spans[0].end, 10);
  CHECK_EQ(spans[1].begin, 113);
  CHECK_EQ(end_of(spans, 2, 0), 2 * (10 + 3 + 100));
  CHECK(rounds == std::vector<Time>{226});
}

void test_rounds() {
  std::vector<Time> rounds;
  spans_of(job_of("rounds=3 off_ps=1000", "node delay 1 1 70\n"), &rounds);
  CHECK((rounds == std::vector<Time>{70, 2 * 70 + kNvlink, 3 * 70 + 2 * kNvlink}));
}

void test_queue_pairs_of_a_connection() {
  // four messages of 1000 B in turn, or one of 4000 B split: alone, the wire is the same
  for (const char* keys : {"qps=4 split=0", "qps=4 split=1", "qps=1 split=0"}) {
    const auto spans = spans_of(job_of(keys, "node transfer 0 2 4000 label=1\n"));
    CHECK_EQ(end_of(spans, 1, 2), kArrives + 3 * kFrame);
  }
  Simulation sim(job_of("qps=3 split=1", "node transfer 0 2 3001\n"), 1, "window");
  sim.advance(100'000'000);
  const auto& finished = sim.report().log.finished;
  CHECK_EQ(finished.size(), 3);
  for (const FinishedFlow& f : finished) CHECK(f.bytes == 1001 || f.bytes == 999);
}

void test_admission() {
  // one at a time: the second is let in when the first has come whole
  const auto spans = spans_of(job_of("admission=1",
                                     "node transfer 0 3 1000 label=1\n"
                                     "node transfer 1 3 1000 label=2\n"));
  CHECK_EQ(end_of(spans, 1, 3), 2 * kNvlink + kArrives);
  CHECK_EQ(end_of(spans, 2, 3), 2 * kNvlink + kArrives + kNvlink + kArrives);
}

std::string refusal(const std::string& nodes, const std::string& keys = "") {
  try {
    Simulation sim(job_of(keys, nodes), 1, "window");
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

void test_what_is_refused() {
  const std::string join = "node join 0 0 0\n";
  for (const std::string& nodes :
       {std::string(), "node transfer 0 0 5\n" + join, "node join 0 1 5\n" + join,
        "node transfer 0 4 5\n" + join, "node local 0 2 5\n" + join, "node transfer 0 1 0\n" + join,
        join + "node join 0 0 0 after=1\n", join + "node repeat 0 0 2 after=0\n",
        join + "node repeat 0 0 0 after=0 begin=0\n", join + "node repeat 1 1 2 after=0 begin=0\n",
        join + "node join 0 0 0\nnode repeat 0 0 2 after=0 begin=0\n",
        join + "node repeat 0 0 2 after=0 begin=0\nnode join 0 0 0 after=0\n"}) {
    CHECK(!refusal(nodes).empty());
  }
  CHECK(refusal(join).empty());
  CHECK(!refusal("node transfer 0 1 5 connection=20000\n", "qps=4").empty());
  CHECK(refusal("graph AAAA 196609\n").find("Adler-32") == std::string::npos);  // but no graph
  CHECK(!refusal("graph AAAA 196609\n").empty());
  CHECK(refusal("graph AAAB 196609\n").find("Adler-32 is 262146") != std::string::npos);
  CHECK(!refusal("graph AAAA\n").empty());
  CHECK(!refusal("graph A-AA 196609\n").empty());
}

}  // namespace
}  // namespace dcqcn

int main() {
  using namespace dcqcn;
  test_where_and_when_a_transfer_is_done();
  test_inside_a_server();
  test_loops();
  test_rounds();
  test_queue_pairs_of_a_connection();
  test_admission();
  test_what_is_refused();
  return check::result("job");
}
