// Random jobs with schemes drawn at random: one for all NICs, or two side by side.
#pragma once

#include "job.hpp"

namespace dcqcn::fuzz {

// The random job of this number, its NICs given other schemes and rows of their knobs. The draws
// are a stream of their own, so the job is otherwise that of random_job().
Job random_scheme_job(std::uint64_t seed, std::uint64_t number);

}  // namespace dcqcn::fuzz
