#include "digests.hpp"

#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "random_job.hpp"

namespace dcqcn::fuzz {
namespace {

constexpr int kRecordedGeneration = 1;

// 16 hexadecimal digits, or "refused" for a job that the parser does not take
std::string one_digest(std::uint64_t seed, std::uint64_t number) {
  try {
    const Verdict verdict = digest(random_job(seed, number, kRecordedGeneration));
    char text[20];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(verdict.digest));
    return text;
  } catch (const std::invalid_argument&) {
    return "refused";
  }
}

}  // namespace

int print_digests(std::uint64_t n, std::uint64_t seed) {
  std::printf("# digests of generation %d of the random jobs: engine_fuzz --digests %llu %llu\n",
              kRecordedGeneration, static_cast<unsigned long long>(n),
              static_cast<unsigned long long>(seed));
  std::printf("jobs %llu seed %llu\n", static_cast<unsigned long long>(n),
              static_cast<unsigned long long>(seed));
  for (std::uint64_t number = 0; number < n; ++number) {
    std::printf("%llu %s\n", static_cast<unsigned long long>(number),
                one_digest(seed, number).c_str());
  }
  return 0;
}

int check_digests(const std::string& path) {
  std::ifstream in(path);
  std::string line, word;
  std::uint64_t n = 0, seed = 0, number = 0;
  std::getline(in, line);  // the comment
  if (!(in >> word >> n) || word != "jobs" || !(in >> word >> seed) || word != "seed" || n == 0) {
    std::printf("%s: expected a comment and `jobs N seed S`\n", path.c_str());
    return 1;
  }
  std::string recorded;
  for (std::uint64_t jobs = 0; jobs < n; ++jobs) {
    if (!(in >> number >> recorded)) {
      std::printf("%s: expected %llu lines `NUMBER DIGEST`, found %llu\n", path.c_str(),
                  static_cast<unsigned long long>(n), static_cast<unsigned long long>(jobs));
      return 1;
    }
    const std::string now = one_digest(seed, number);
    if (now != recorded) {
      std::printf("job %llu of seed %llu: recorded %s, now %s; engine_fuzz --show %llu %llu\n",
                  static_cast<unsigned long long>(number), static_cast<unsigned long long>(seed),
                  recorded.c_str(), now.c_str(), static_cast<unsigned long long>(number),
                  static_cast<unsigned long long>(seed));
      return 1;
    }
  }
  std::printf("%llu jobs as recorded\n", static_cast<unsigned long long>(n));
  return 0;
}

}  // namespace dcqcn::fuzz
