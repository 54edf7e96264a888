// How much CPU time a job takes, without Python: engine_bench FILE [THREADS [MOST_US [FROM_US]]]
//
// FILE is a job as engine_fuzz knows it (fuzz/job.hpp); after its script the network runs, a report
// every millisecond, until everything is delivered or MOST_US have passed; time and hops before
// FROM_US, while pipes fill, do not count. Prints one line of JSON. The digest is that of all
// reports, so that two builds show that they did the same.
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>

#include "tests/fuzz/job.hpp"
#include "tests/fuzz/report_fields.hpp"

namespace {

using namespace dcqcn;

double seconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// of the whole process, so that all threads of an engine count
double cpu() { return seconds(CLOCK_PROCESS_CPUTIME_ID); }
double wall() { return seconds(CLOCK_MONOTONIC); }

// states before engines had threads are measured with this file too
template <class Player>
Player player_of(const fuzz::Job& job, std::size_t threads) {
  if constexpr (std::is_constructible_v<Player, const fuzz::Job&, const char*, int, std::size_t>) {
    return Player(job, "window", 0, threads);
  } else {
    return Player(job, "window");
  }
}

void run(const fuzz::Job& job, std::size_t threads, Time most, Time from) {
  const double before = cpu();
  fuzz::Player player = player_of<fuzz::Player>(job, threads);
  for (const std::string& line : job.script) player.play(line);
  const double ready = cpu();
  double spent = 0, passed = 0;
  std::uint64_t digest = 0;
  Simulation& simulation = player.simulation();
  if (from > 0) {
    simulation.advance(from);
    simulation.report();  // adds up the totals
  }
  const std::uint64_t filled = simulation.totals().hops;
  while (!simulation.done() && simulation.now() < most) {
    const double cpu_then = cpu(), wall_then = wall();
    simulation.advance(std::min(most, simulation.now() + 1000 * kPicosPerMicro));
    spent += cpu() - cpu_then;
    passed += wall() - wall_then;
    digest = fuzz::Fields(simulation.report(), simulation.topology()).digest(digest);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf(
      "{\"setup_s\": %.4f, \"cpu_s\": %.4f, \"wall_s\": %.4f, \"hops\": %llu, \"pauses\": %llu, "
      "\"us\": %.1f, \"mb\": %.1f, \"digest\": \"%016llx\"}\n",
      ready - before, spent, passed,
      static_cast<unsigned long long>(simulation.totals().hops - filled),
      static_cast<unsigned long long>(simulation.totals().pauses),
      static_cast<double>(simulation.now()) * 1e-6, static_cast<double>(usage.ru_maxrss) / 1e3,
      static_cast<unsigned long long>(digest));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 5) {
    std::fprintf(stderr, "usage: engine_bench FILE [THREADS [MOST_US [FROM_US]]]\n");
    return 2;
  }
  std::ifstream in(argv[1]);
  std::stringstream text;
  text << in.rdbuf();
  const Time most = argc > 3 ? std::atoll(argv[3]) * kPicosPerMicro : kEndOfTime;
  run(fuzz::Job::parse(text.str()), argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1, most,
      argc > 4 ? std::atoll(argv[4]) * kPicosPerMicro : 0);
}
