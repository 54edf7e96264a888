// Many simulations at once, in threads: each goes from stop to stop, and of every interval stays
// what score and harms are made of. A simulation owns all that it changes, so the number of threads
// changes no byte.
#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <vector>

#include "sim/simulation.hpp"

namespace dcqcn {

// one interval; its columns are the rows of the tables below that follow those of earlier ones
struct BatchInterval {
  Time start = 0;
  Time end = 0;
  std::uint64_t active_flows = 0;
  std::uint64_t unlimited_flows = 0;
  std::size_t rtts = 0;       // rows
  std::size_t finished = 0;   // rows
  std::size_t job_spans = 0;  // rows
  Totals totals;
};

struct BatchRun {
  Simulation* simulation = nullptr;
  std::vector<Time> stops;
  std::vector<BatchInterval> intervals;
  std::vector<Bytes> host_tx;  // a row per interval, a column per host
  std::vector<double> pauses;  // likewise, per port
  std::vector<RttSum> rtts;
  std::vector<FinishedFlow> finished;
  std::vector<JobSpan> job_spans;

  // to the last stop, to the end of the traffic, or until `stop` is set
  void go(const std::atomic<bool>& stop);

 private:
  void keep(const IntervalData& r);
};

// work(i, stop) for i < n in so many threads. `interrupted` is asked some times a second by the
// caller's thread: if it says so, `stop` is set and no further i begins. The first error, by i, is
// thrown when all have ended.
using Work = std::function<void(std::size_t, const std::atomic<bool>&)>;
void in_threads(std::size_t n, unsigned threads, const Work& work,
                const std::function<bool()>& interrupted);

}  // namespace dcqcn
