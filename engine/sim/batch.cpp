#include "sim/batch.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

namespace dcqcn {

void BatchRun::go(const std::atomic<bool>& stop) {
  for (const Time until : stops) {
    if (stop || simulation->done()) return;
    simulation->advance(until);
    keep(simulation->report());
  }
}

void BatchRun::keep(const IntervalData& r) {
  const IntervalLog& log = r.log;
  intervals.push_back({r.start, r.end, r.active_flows, r.unlimited_flows, log.rtts.size(),
                       log.finished.size(), log.job_spans.size(), log.totals});
  const auto hosts = static_cast<std::size_t>(simulation->topology().hosts());
  for (std::size_t h = 0; h < hosts; ++h) host_tx.push_back(r.ports[h].counters.tx_bytes);
  for (const PortReport& port : r.ports) pauses.push_back(port.pause);
  rtts.insert(rtts.end(), log.rtts.begin(), log.rtts.end());
  finished.insert(finished.end(), log.finished.begin(), log.finished.end());
  job_spans.insert(job_spans.end(), log.job_spans.begin(), log.job_spans.end());
}

void in_threads(std::size_t n, unsigned threads, const Work& work,
                const std::function<bool()>& interrupted) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> stop{false};
  std::vector<std::exception_ptr> errors(n);
  std::mutex mutex;
  std::condition_variable ended;
  std::size_t working = std::min<std::size_t>(std::max(threads, 1u), n);
  const auto go = [&] {
    for (std::size_t i; !stop && (i = next++) < n;) {
      try {
        work(i, stop);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
    const std::lock_guard lock(mutex);
    --working;
    ended.notify_one();
  };
  std::vector<std::thread> pool;
  for (std::size_t t = working; t > 0; --t) pool.emplace_back(go);
  {
    std::unique_lock lock(mutex);
    while (!ended.wait_for(lock, std::chrono::milliseconds(50), [&] { return working == 0; })) {
      lock.unlock();
      if (!stop && interrupted()) stop = true;
      lock.lock();
    }
  }
  for (std::thread& thread : pool) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace dcqcn
