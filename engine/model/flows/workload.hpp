// Which flow starts when. Open-loop sources (Poisson, flow lists) know their times in advance;
// closed-loop rounds start a pause after the last completion of the round before; workloads that
// react (model/flows/reacting.hpp) start what an arrival makes its receiver send.
#pragma once

#include <memory>
#include <queue>
#include <vector>

#include "model/base/archive.hpp"
#include "model/base/random_stream.hpp"
#include "model/flows/flow_start.hpp"
#include "model/flows/reacting.hpp"
#include "model/jobs/job.hpp"
#include "model/text/scenario.hpp"

namespace dcqcn {

class FlowSource {
 public:
  // smallest_delay: a closed loop cannot react faster than one link
  FlowSource(const Scenario& scenario, Time smallest_delay, std::uint64_t seed);

  // start of the next flow that is already known; kNever if none
  Time next_time() const { return lanes_.empty() ? kNever : lanes_.top().time; }

  // append every flow that starts before `until`, ordered by (time, workload, lane)
  void take_until(Time until, std::vector<FlowStart>& out);

  // a flow of this workload completed, at `host` came its last ACK; the caller reports all
  // completions before `until` before it asks for starts at or after until + smallest_delay
  void finished(std::uint32_t workload, std::uint32_t tag, int host, Time when);

  // the last byte of a message of a workload that reacts has come to `host`: what it makes this
  // host send at the same instant is appended to `out`, what it makes it send later starts at
  // when + smallest_delay or after
  void arrived(std::uint32_t workload, std::uint32_t tag, int host, Time when,
               std::vector<FlowStart>& out);

  // no more flow will ever start, unless an unfinished one makes it
  bool exhausted() const { return lanes_.empty() && jobs_.idle(); }

  // what happens at hosts because of jobs, beside what `arrived` and `finished` say
  Jobs& jobs() { return jobs_; }

  void visit(Archive& a) {
    a.all<FlowSource>(built(scenario_), built(smallest_delay_), lanes_, draws_, rounds_, begun_,
                      received_, built(lists_), built(reacting_), jobs_);
    for (const auto& workload : reacting_) {
      if (workload) workload->visit(a);
    }
  }

 private:
  // a lane is one source of one Poisson workload, one host of a workload that reacts, or one whole
  // round- or list-based workload
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
    std::uint64_t outstanding = 0;  // messages of the round
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
  void pass_on(std::uint32_t workload, int host, Time when, std::vector<FlowStart>& out);

  const Scenario* scenario_;
  Time smallest_delay_;
  std::priority_queue<Lane> lanes_;
  std::vector<std::vector<RandomStream>> draws_;  // [workload][lane]
  std::vector<Rounds> rounds_;
  std::vector<std::vector<std::uint32_t>> begun_;     // [workload][lane]: flows of a Poisson source
  std::vector<std::vector<std::uint32_t>> received_;  // [workload][place]: transfers of a ring
  std::vector<std::vector<Transfer>> lists_;          // flow lists and streams, by start
  std::vector<std::unique_ptr<Reacting>> reacting_;   // null for others
  Jobs jobs_;
};

}  // namespace dcqcn
