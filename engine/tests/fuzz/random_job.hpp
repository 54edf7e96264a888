// Random jobs: topology, traffic, wire, PFC, transport, monitor, and settings changed in mid-run.
#pragma once

#include "job.hpp"

namespace dcqcn::fuzz {

// The newest generation of jobs. tests/digests holds digests of generation 1, so its jobs never
// change: new options are drawn only where `generation_ >= 2` (and so on, a number for each time
// that digests of new jobs are recorded). A draw that is not made moves no other draw.
inline constexpr int kGeneration = 8;

// The same (seed, number, generation) is the same job on every machine; it may be one that the
// parser refuses. Throws std::invalid_argument for a generation that does not exist.
Job random_job(std::uint64_t seed, std::uint64_t number, int generation = kGeneration);

}  // namespace dcqcn::fuzz
