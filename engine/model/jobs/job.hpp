// A job under way: which node of its graph starts when. What it decides at a host depends on what
// has happened there, or elsewhere a link's delay before, so engines that run hosts in another
// order, a window at a time, do the same.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "model/base/archive.hpp"
#include "model/base/metrics.hpp"
#include "model/flows/flow_start.hpp"
#include "model/jobs/job_graph.hpp"

namespace dcqcn {

enum class JobStep : std::uint8_t {
  kStart,    // all before the node are done
  kAsk,      // its sender asks the receiver to be let in
  kGranted,  // the receiver has let it in
  kLand,     // the first byte of a local transfer comes
  kDone,
};

// what is to happen at a host; at one instant by workload, node and step
struct JobEvent {
  Time when = kNever;
  std::uint32_t node = 0;
  std::uint16_t workload = 0;
  JobStep step = JobStep::kStart;

  bool operator<(const JobEvent& o) const {  // std heaps keep the largest
    if (when != o.when) return when > o.when;
    if (workload != o.workload) return workload > o.workload;
    if (node != o.node) return node > o.node;
    return step > o.step;
  }
};

// what jobs share: the events of every host, and the servers' links
struct JobHosts {
  JobHosts(const Scenario& scenario, Time smallest_delay);
  void push(int host, const JobEvent& event);
  JobEvent pop(int host);

  const Scenario& scenario;
  Time elsewhere;                             // how long it takes until another host knows
  std::vector<Time> due;                      // per host: the first event
  std::vector<int> woken;                     // hosts whose first event is a new one
  std::vector<std::vector<JobEvent>> events;  // per host, heaps
  std::vector<Time> out_free, in_free;        // per host: of its link inside the server
  std::uint64_t count = 0;
  std::vector<JobSpan> spans;  // since the last report

  void visit(Archive& a) {
    a.all<JobHosts>(BuiltPointer{}, built(elsewhere), due, woken, events, out_free, in_free, count,
                    spans);
  }
};

class JobRun {
 public:
  JobRun(const WorkloadSpec& spec, std::uint16_t workload, JobHosts& hosts);

  void happen(const JobEvent& event, int host, std::vector<FlowStart>& out);
  // the last byte of a message of the node has come to `host`; its ACK has come back
  void arrived(std::uint32_t node, int host, Time when);
  void acked(std::uint32_t node, int host, Time when);

  void visit(Archive& a) {
    a.all<JobRun>(BuiltPointer{}, built(workload_), BuiltPointer{}, BuiltPointer{}, pending_,
                  ready_, left_, built(loops_), spans_, turns_, inboxes_, outside_left_, begun_,
                  began_, last_done_);
  }

 private:
  struct Span {  // of one label at one host
    std::uint32_t nodes = 0;
    std::uint32_t left = 0;
    Time begin = kNever;
    Time end = 0;
  };
  struct Inbox {  // of a receiver, if transfers are admitted
    std::uint32_t let_in = 0;
    std::deque<std::uint32_t> waiting;
    void visit(Archive& a) { a.all<Inbox>(let_in, waiting); }
  };

  void check_on_hosts();
  void rearm(std::uint32_t from, std::uint32_t last);
  void begin_round(Time when);
  void start(std::uint32_t node, int host, Time when, std::vector<FlowStart>& out);
  void ask(std::uint32_t node, int host, Time when);
  void leave(int host, Time when);
  void launch(std::uint32_t node, Time when, std::vector<FlowStart>& out);
  void start_local(std::uint32_t node, Time when);
  void land(std::uint32_t node, Time when);
  void repeat(std::uint32_t node, Time when);
  void done(std::uint32_t node, int host, Time when);
  void let(std::uint32_t successor, int host, Time when);
  void round_done(Time when);
  void note(std::uint32_t node, int host, Time when);
  std::uint32_t turn(const JobNode& node);
  int src_of(const JobNode& node) const { return spec_.hosts[node.src]; }
  int dst_of(const JobNode& node) const { return spec_.hosts[node.dst]; }
  Span& span(int host, std::uint16_t label) {
    return spans_[static_cast<std::uint32_t>(host) << 16 | label];
  }
  void later(int host, Time when, std::uint32_t node, JobStep step) {
    hosts_.push(host, {when, node, workload_, step});
  }

  const WorkloadSpec& spec_;
  std::uint16_t workload_;
  JobHosts& hosts_;
  const JobGraph& graph_;
  std::vector<std::uint32_t> pending_;  // before a node starts: predecessors; then: its messages
  std::vector<Time> ready_;             // no predecessor that is done lets it start before
  std::vector<std::uint64_t> left_;     // per loop: repetitions to come
  std::unordered_map<std::uint32_t, std::uint32_t> loops_;  // by last node
  std::unordered_map<std::uint32_t, Span> spans_;           // by host << 16 | label
  std::unordered_map<std::uint64_t, std::uint32_t> turns_;  // transfers begun, by connection
  std::vector<Inbox> inboxes_;                              // per host, if there is admission
  std::uint32_t outside_left_ = 0;                          // nodes of the round
  std::int64_t begun_ = 0;
  Time began_ = 0;
  Time last_done_ = 0;
};

// the jobs of a scenario
class Jobs {
 public:
  Jobs(const Scenario& scenario, Time smallest_delay);
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  bool any() const { return any_; }
  // no event is to come, unless a message makes one
  bool idle() const { return hosts_.count == 0; }
  // of the host's first event; never in the past
  const Time& due(int host) const { return hosts_.due[static_cast<std::size_t>(host)]; }
  // hosts whose first event is a new one: the engine takes them
  std::vector<int>& woken() { return hosts_.woken; }
  // the first event of `host`, which is due; flows that start at this instant are appended to `out`
  void happen(int host, std::vector<FlowStart>& out);
  void arrived(std::uint32_t workload, std::uint32_t node, int host, Time when) {
    jobs_[workload]->arrived(node, host, when);
  }
  void acked(std::uint32_t workload, std::uint32_t node, int host, Time when) {
    jobs_[workload]->acked(node, host, when);
  }
  // ordered by end
  void take_spans(std::vector<JobSpan>& out);

  void visit(Archive& a) { a.all<Jobs>(hosts_, jobs_, built(any_)); }

 private:
  JobHosts hosts_;
  std::vector<std::unique_ptr<JobRun>> jobs_;  // by workload; null for others
  bool any_ = false;
};

}  // namespace dcqcn
