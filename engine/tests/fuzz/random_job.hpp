// Random jobs: topology, traffic, wire, PFC, transport, monitor, and settings changed in mid-run.
#pragma once

#include "job.hpp"

namespace dcqcn::fuzz {

// the same (seed, number) is the same job on every machine; it may be one that the parser refuses
Job random_job(std::uint64_t seed, std::uint64_t number);

}  // namespace dcqcn::fuzz
