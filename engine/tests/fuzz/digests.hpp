// One digest per random job, as a text that is committed (tests/digests/engine-fuzz.txt): what the
// window engine reports for the job, so that a change of the model shows, which the comparison of
// two engines over one model cannot see.
#pragma once

#include <cstdint>
#include <string>

namespace dcqcn::fuzz {

// print the file for the first n jobs of a seed, of the oldest generation of jobs
int print_digests(std::uint64_t n, std::uint64_t seed);

// run the jobs of a file again; 0 if all agree, else 1 after naming the first job that differs
int check_digests(const std::string& path);

}  // namespace dcqcn::fuzz
