// Which flow starts when. Open-loop sources (Poisson, flow lists) know their times in advance;
// closed-loop rounds start a pause after the last completion of the round before.
#pragma once

#include <queue>
#include <vector>

#include "model/random_stream.hpp"
#include "model/scenario.hpp"

namespace dcqcn {

struct FlowStart {
  Time start = 0;
  Bytes bytes = 0;
  int src = 0;
  int dst = 0;
  std::uint32_t workload = 0;
  std::uint32_t messages = 1;
  std::uint8_t priority = 3;
};

class FlowSource {
 public:
  // smallest_delay: a closed loop cannot react faster than one link
  FlowSource(const Scenario& scenario, Time smallest_delay, std::uint64_t seed);

  // start of the next flow that is already known; kNever if none
  Time next_time() const { return lanes_.empty() ? kNever : lanes_.top().time; }

  // append every flow that starts before `until`, ordered by (time, workload, lane)
  void take_until(Time until, std::vector<FlowStart>& out);

  // a flow of this workload completed; the caller reports all completions before `until` before
  // it asks for starts at or after until + smallest_delay
  void finished(std::uint32_t workload, Time when);

  // no more flow will ever start, unless an unfinished one makes it
  bool exhausted() const { return lanes_.empty(); }

 private:
  // a lane is one source of one Poisson workload, or one whole round- or list-based workload
  struct Lane {
    Time time;
    std::uint32_t workload;
    std::uint32_t index;
    bool operator<(const Lane& o) const {  // std::priority_queue pops the largest
      if (time != o.time) return time > o.time;
      if (workload != o.workload) return workload > o.workload;
      return index > o.index;
    }
  };
  struct Rounds {
    std::uint64_t outstanding = 0;
    std::int64_t begun = 0;
    Time last_finish = 0;
    std::size_t next_transfer = 0;  // flow lists
  };

  Time poisson_next(const WorkloadSpec& w, RandomStream& draws, Time after) const;
  static std::vector<Transfer> draw_streams(const WorkloadSpec& w, std::uint64_t seed,
                                            std::uint64_t id);
  Bytes draw_size(const Cdf& cdf, double u) const;
  void emit_round(std::uint32_t workload, Time when, std::vector<FlowStart>& out);
  void emit_poisson(const Lane& lane, std::vector<FlowStart>& out);
  void emit_list(const Lane& lane, std::vector<FlowStart>& out);

  const Scenario* scenario_;
  Time smallest_delay_;
  std::priority_queue<Lane> lanes_;
  std::vector<std::vector<RandomStream>> draws_;  // [workload][lane]
  std::vector<Rounds> rounds_;
  std::vector<std::vector<Transfer>> lists_;  // flow lists and streams, by start
};

}  // namespace dcqcn
