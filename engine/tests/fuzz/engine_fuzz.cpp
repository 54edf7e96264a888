// The window engine against the plain event engine.
//
//   engine_fuzz N SEED          N random jobs; a failure is shrunk and printed
//   engine_fuzz --schemes N SEED  the same with schemes drawn at random
//   engine_fuzz --threads N SEED  the window engine in one thread against 2, 3 and 8
//   engine_fuzz --replay FILE.. jobs from files (tests/fuzz-corpus)
//   engine_fuzz --digest N SEED one digest of the window engine's reports, to compare builds
//   engine_fuzz --digests N SEED  one digest a job, the text of tests/digests/engine-fuzz.txt
//   engine_fuzz --check FILE    the same jobs again; names the first that differs
//   engine_fuzz --show K SEED   print job K
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "digests.hpp"
#include "random_job.hpp"
#include "random_schemes.hpp"

using namespace dcqcn;
using namespace dcqcn::fuzz;

namespace {

struct Sum {
  std::uint64_t jobs = 0, refused = 0, hops = 0, storms = 0, lossy = 0, digest = 0;

  void add(const Verdict& v) {
    ++jobs;
    hops += v.hops;
    storms += v.pauses > 0;
    lossy += v.drops > 0;
    digest = mix64(digest + v.digest);
  }
  void print() const {
    std::printf(
        "%llu jobs (%llu with pauses, %llu with drops), %.1f M packet-hops, digest %016llx\n",
        static_cast<unsigned long long>(jobs), static_cast<unsigned long long>(storms),
        static_cast<unsigned long long>(lossy), static_cast<double>(hops) / 1e6,
        static_cast<unsigned long long>(digest));
  }
};

Job plain_job(std::uint64_t seed, std::uint64_t number) { return random_job(seed, number); }

Verdict digest_alone(const Job& job) { return digest(job); }

int fuzz_many(std::uint64_t n, std::uint64_t seed, Verdict (*judge)(const Job&),
              Job (*draw)(std::uint64_t, std::uint64_t) = plain_job) {
  Sum sum;
  for (std::uint64_t number = 0; sum.jobs < n; ++number) {
    const Job job = draw(seed, number);
    Verdict verdict;
    if (const char* only = std::getenv("FUZZ_VERBOSE"); only != nullptr) {
      std::printf("job %llu\n", static_cast<unsigned long long>(number));
      std::fflush(stdout);
    }
    try {
      verdict = judge(job);
    } catch (const std::invalid_argument& refused) {
      if (++sum.refused > n + 100) {
        std::printf("too many jobs are refused; the last: %s\n", refused.what());
        return 1;
      }
      continue;
    }
    sum.add(verdict);
    if (!verdict.difference.empty()) {
      std::printf("# seed %llu, job %llu: %s\n# shrunk:\n%s", static_cast<unsigned long long>(seed),
                  static_cast<unsigned long long>(number), verdict.difference.c_str(),
                  shrink(job, judge).text().c_str());
      return 1;
    }
  }
  sum.print();
  return 0;
}

int replay(int count, char** files) {
  Sum sum;
  int failed = 0;
  for (int i = 0; i < count; ++i) {
    std::ifstream in(files[i]);
    std::stringstream text;
    text << in.rdbuf();
    const Verdict verdict = compare(Job::parse(text.str()));
    sum.add(verdict);
    if (!verdict.difference.empty()) {
      ++failed;
      std::printf("%s: %s\n", files[i], verdict.difference.c_str());
    }
  }
  sum.print();
  return failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int i) { return std::strtoull(argv[i], nullptr, 10); };
  if (argc >= 3 && std::strcmp(argv[1], "--replay") == 0) return replay(argc - 2, argv + 2);
  if (argc == 4 && std::strcmp(argv[1], "--digest") == 0) {
    return fuzz_many(number(2), number(3), digest_alone);
  }
  if (argc == 4 && std::strcmp(argv[1], "--schemes") == 0) {
    return fuzz_many(number(2), number(3), compare, random_scheme_job);
  }
  if (argc == 4 && std::strcmp(argv[1], "--threads") == 0) {
    return fuzz_many(number(2), number(3), compare_threads);
  }
  if (argc == 4 && std::strcmp(argv[1], "--digests") == 0) {
    return print_digests(number(2), number(3));
  }
  if (argc == 3 && std::strcmp(argv[1], "--check") == 0) return check_digests(argv[2]);
  if (argc == 4 && std::strcmp(argv[1], "--show") == 0) {
    std::fputs(random_job(number(3), number(2)).text().c_str(), stdout);
    return 0;
  }
  if (argc == 3) return fuzz_many(number(1), number(2), compare);
  std::fprintf(stderr,
               "usage: engine_fuzz N SEED | --schemes N SEED | --threads N SEED | --replay FILE.. "
               "| --digest N SEED | "
               "--digests N SEED "
               "| --check FILE | --show K SEED\n");
  return 2;
}
