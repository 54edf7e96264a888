// Options of the engine that came after the first generation of random jobs.
#pragma once

#include "job.hpp"

namespace dcqcn::fuzz {

// Adds options to a job, drawn from a stream of their own: ACKs in the data class, next hops of
// single flows. A job that the parser refuses stays as it is.
void add_options(Job& job, std::uint64_t seed, std::uint64_t number);

// The same of the third generation: flows that start at random, with and without an end,
// several connections of each pair of hosts, and workloads that react to arrivals.
void add_traffic(Job& job, std::uint64_t seed, std::uint64_t number);

// The same of the fourth: round trips of probes.
void add_probes(Job& job, std::uint64_t seed, std::uint64_t number);

// The same of the fifth: switches with no or hardly any shared buffer, so that thresholds are 0,
// and alphas of single ports that change in mid-run.
void change_buffers(Job& job, std::uint64_t seed, std::uint64_t number);

// The same of the sixth: graphs of jobs, and servers.
void add_graphs(Job& job, std::uint64_t seed, std::uint64_t number);

// The same of the seventh: traffic classes with weights, shares, curves and TCP senders.
void add_classes(Job& job, std::uint64_t seed, std::uint64_t number);

// The same of the eighth: a cost per message, and cuts at losses.
void add_card(Job& job, std::uint64_t seed, std::uint64_t number);

}  // namespace dcqcn::fuzz
