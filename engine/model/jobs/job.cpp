#include "model/jobs/job.hpp"

#include <algorithm>
#include <stdexcept>
#include <tuple>

namespace dcqcn {
namespace {

std::string named(const char* what, std::int64_t number) {
  return std::string(what) + " " + std::to_string(number);
}

// in 128 bits: pacing_gap holds for frames alone
Time time_at(Bytes bytes, Rate rate) {
  __extension__ using Wide = unsigned __int128;
  const Wide bits = static_cast<Wide>(bytes) * 8 * static_cast<Wide>(kPicosPerSecond);
  return static_cast<Time>((bits + static_cast<Wide>(rate) - 1) / static_cast<Wide>(rate));
}

}  // namespace

// ---- what jobs share ----

JobHosts::JobHosts(const Scenario& s, Time smallest_delay)
    : scenario(s), elsewhere(smallest_delay), due(static_cast<std::size_t>(s.hosts), kNever) {
  events.resize(due.size());
  out_free.resize(due.size());
  in_free.resize(due.size());
}

void JobHosts::push(int host, const JobEvent& event) {
  const auto h = static_cast<std::size_t>(host);
  events[h].push_back(event);
  std::push_heap(events[h].begin(), events[h].end());
  ++count;
  if (event.when >= due[h]) return;
  due[h] = event.when;
  woken.push_back(host);
}

JobEvent JobHosts::pop(int host) {
  const auto h = static_cast<std::size_t>(host);
  std::pop_heap(events[h].begin(), events[h].end());
  const JobEvent event = events[h].back();
  events[h].pop_back();
  --count;
  due[h] = events[h].empty() ? kNever : events[h].front().when;
  return event;
}

Jobs::Jobs(const Scenario& scenario, Time smallest_delay) : hosts_(scenario, smallest_delay) {
  jobs_.resize(scenario.workloads.size());
  for (std::size_t w = 0; w < jobs_.size(); ++w) {
    const WorkloadSpec& spec = scenario.workloads[w];
    if (spec.pattern != Pattern::kJob) continue;
    any_ = true;
    try {
      jobs_[w] = std::make_unique<JobRun>(spec, static_cast<std::uint16_t>(w), hosts_);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument("job of workload " + std::to_string(w) + ": " + error.what());
    }
  }
}

void Jobs::happen(int host, std::vector<FlowStart>& out) {
  const JobEvent event = hosts_.pop(host);
  jobs_[event.workload]->happen(event, host, out);
}

void Jobs::take_spans(std::vector<JobSpan>& out) {
  std::swap(out, hosts_.spans);
  hosts_.spans.clear();
  std::sort(out.begin(), out.end(), [](const JobSpan& a, const JobSpan& b) {
    return std::tie(a.end, a.workload, a.host, a.label, a.begin) <
           std::tie(b.end, b.workload, b.host, b.label, b.begin);
  });
}

// ---- one job ----

JobRun::JobRun(const WorkloadSpec& spec, std::uint16_t workload, JobHosts& hosts)
    : spec_(spec), workload_(workload), hosts_(hosts), graph_(spec.job) {
  const auto endpoints = static_cast<std::uint32_t>(spec.hosts.size());
  if (graph_.endpoints > endpoints) {
    throw std::invalid_argument("a job of " + std::to_string(graph_.endpoints) + " endpoints on " +
                                std::to_string(endpoints) + " hosts");
  }
  pending_.resize(graph_.size());
  ready_.resize(graph_.size());
  check_on_hosts();
  for (const JobGraph::Loop& loop : graph_.loops) {
    loops_.emplace(loop.last, static_cast<std::uint32_t>(left_.size()));
    left_.push_back(graph_.nodes[loop.last].value);
  }
  for (auto& [key, span] : spans_) span.left = span.nodes;
  if (spec.admission > 0) inboxes_.resize(static_cast<std::size_t>(hosts.scenario.hosts));
  if (spec.start < spec.stop) begin_round(spec.start);
}

// what only the scenario can tell
void JobRun::check_on_hosts() {
  const Scenario& scenario = hosts_.scenario;
  const Bytes most = scenario.wire.payload * ((Bytes{1} << 31) - 1);
  for (std::uint32_t i = 0; i < graph_.size(); ++i) {
    const JobNode& node = graph_.nodes[i];
    const int src = src_of(node);
    const int dst = dst_of(node);
    if (node.label != 0) {
      ++span(src, node.label).nodes;
      if (node.moves()) ++span(dst, node.label).nodes;
    }
    if (node.is() == JobKind::kLocal && !scenario.servers.same(src, dst)) {
      throw std::invalid_argument(named("node", i) + " is local between " + named("host", src) +
                                  " and " + named("host", dst) + ", which are not in one server");
    }
    if (node.is() != JobKind::kTransfer) continue;
    if (static_cast<Bytes>(node.value) > most || node.connection >= 65536 / spec_.qps) {
      throw std::invalid_argument(named("node", i) + " has more than 2^31 - 1 packets, or its " +
                                  "connection times qps is above 65535");
    }
  }
}

// all nodes of [from, last] are as if they had never started
void JobRun::rearm(std::uint32_t from, std::uint32_t last) {
  for (std::uint32_t i = from; i <= last; ++i) {
    pending_[i] = 0;
    ready_[i] = 0;
  }
  // what leads in from before `from` is the first node of a loop, whose repetition is let by hand
  const std::uint32_t before = from == 0 ? 0 : from - 1;
  for (std::uint32_t i = before; i < last; ++i) {
    graph_.for_each_successor(i, [&](std::uint32_t next) {
      if (next >= from && next <= last) ++pending_[next];
    });
  }
}

void JobRun::begin_round(Time when) {
  ++begun_;
  began_ = when;
  last_done_ = when;
  outside_left_ = 0;
  rearm(0, graph_.size() - 1);
  for (std::uint32_t i = 0; i < graph_.size(); ++i) {
    const JobNode& node = graph_.nodes[i];
    outside_left_ += node.outside;
    if (pending_[i] > 0) continue;
    ready_[i] = when;
    later(src_of(node), when, i, JobStep::kStart);
  }
}

void JobRun::happen(const JobEvent& event, int host, std::vector<FlowStart>& out) {
  switch (event.step) {
    case JobStep::kStart:
      start(event.node, host, event.when, out);
      break;
    case JobStep::kAsk:
      ask(event.node, host, event.when);
      break;
    case JobStep::kGranted:
      launch(event.node, event.when, out);
      break;
    case JobStep::kLand:
      land(event.node, event.when);
      break;
    case JobStep::kDone:
      done(event.node, host, event.when);
      break;
  }
}

void JobRun::start(std::uint32_t i, int host, Time when, std::vector<FlowStart>& out) {
  const JobNode& node = graph_.nodes[i];
  switch (node.is()) {
    case JobKind::kTransfer:
      if (spec_.admission > 0) {
        later(dst_of(node), when + hosts_.elsewhere, i, JobStep::kAsk);
      } else {
        launch(i, when, out);
      }
      break;
    case JobKind::kLocal:
      start_local(i, when);
      break;
    case JobKind::kDelay:
      later(host, when + static_cast<Time>(node.value), i, JobStep::kDone);
      break;
    case JobKind::kJoin:
      done(i, host, when);
      break;
    case JobKind::kRepeat:
      repeat(i, when);
      break;
  }
}

// ---- transfers over the fabric ----

void JobRun::ask(std::uint32_t i, int host, Time when) {
  Inbox& inbox = inboxes_[static_cast<std::size_t>(host)];
  if (inbox.let_in == static_cast<std::uint32_t>(spec_.admission)) {
    inbox.waiting.push_back(i);
    return;
  }
  ++inbox.let_in;
  later(src_of(graph_.nodes[i]), when + hosts_.elsewhere, i, JobStep::kGranted);
}

// a transfer that was let in has come whole
void JobRun::leave(int host, Time when) {
  Inbox& inbox = inboxes_[static_cast<std::size_t>(host)];
  --inbox.let_in;
  if (inbox.waiting.empty()) return;
  const std::uint32_t next = inbox.waiting.front();
  inbox.waiting.pop_front();
  ask(next, host, when);
}

// the queue pair whose turn it is
std::uint32_t JobRun::turn(const JobNode& node) {
  if (spec_.qps == 1) return 0;
  const std::uint64_t key = static_cast<std::uint64_t>(node.src) << 32 |
                            static_cast<std::uint64_t>(node.dst) << 16 | node.connection;
  return turns_[key]++ % static_cast<std::uint32_t>(spec_.qps);
}

void JobRun::launch(std::uint32_t i, Time when, std::vector<FlowStart>& out) {
  const JobNode& node = graph_.nodes[i];
  const Bytes bytes = static_cast<Bytes>(node.value);
  const auto qps = static_cast<std::uint32_t>(spec_.qps);
  const Bytes piece = spec_.split ? (bytes + qps - 1) / qps : bytes;
  const auto pieces = static_cast<std::uint32_t>((bytes + piece - 1) / piece);
  const std::uint32_t first = spec_.split ? 0 : turn(node);
  pending_[i] = pieces << 16 | pieces;
  for (std::uint32_t k = 0; k < pieces; ++k) {
    const Bytes rest = bytes - piece * k;
    FlowStart flow = flow_of(
        spec_, workload_,
        {.src = src_of(node), .dst = dst_of(node), .bytes = std::min(piece, rest), .start = when});
    flow.connection = static_cast<std::uint16_t>(node.connection * qps + first + k);
    flow.tag = i;
    out.push_back(flow);
  }
}

void JobRun::arrived(std::uint32_t i, int host, Time when) {
  if ((--pending_[i] & 0xFFFF) > 0) return;
  if (spec_.admission > 0) leave(host, when);
  done(i, host, when);
}

void JobRun::acked(std::uint32_t i, int host, Time when) {
  if (!graph_.nodes[i].heard) return;  // it may run anew by now
  pending_[i] -= 1u << 16;
  if (pending_[i] >> 16 > 0) return;
  graph_.for_each_successor(i, [&](std::uint32_t next) {
    if (src_of(graph_.nodes[next]) == host) let(next, host, when);
  });
}

// ---- transfers inside a server: one after the other at both ends ----

void JobRun::start_local(std::uint32_t i, Time when) {
  const JobNode& node = graph_.nodes[i];
  const Servers& servers = hosts_.scenario.servers;
  Time& free = hosts_.out_free[static_cast<std::size_t>(src_of(node))];
  const Time begin = std::max(when, free);
  free = begin + time_at(static_cast<Bytes>(node.value), servers.rate);
  later(dst_of(node), begin + servers.delay, i, JobStep::kLand);
}

void JobRun::land(std::uint32_t i, Time when) {
  const JobNode& node = graph_.nodes[i];
  Time& free = hosts_.in_free[static_cast<std::size_t>(dst_of(node))];
  free =
      std::max(when, free) + time_at(static_cast<Bytes>(node.value), hosts_.scenario.servers.rate);
  later(dst_of(node), free, i, JobStep::kDone);
}

// ---- what follows ----

void JobRun::repeat(std::uint32_t i, Time when) {
  const std::uint32_t loop = loops_.at(i);
  const auto [begin, last] = graph_.loops[loop];
  const int host = src_of(graph_.nodes[i]);
  if (--left_[loop] == 0) {
    left_[loop] = graph_.nodes[i].value;
    done(i, host, when);
    return;
  }
  rearm(begin + 1, last);
  ready_[begin] = when;
  later(host, when, begin, JobStep::kStart);
}

void JobRun::let(std::uint32_t i, int host, Time when) {
  const int starts = src_of(graph_.nodes[i]);
  ready_[i] = std::max(ready_[i], starts == host ? when : when + hosts_.elsewhere);
  if (--pending_[i] == 0) later(starts, ready_[i], i, JobStep::kStart);
}

// at `host`, where the node ends; the sender of a transfer learns it from the ACK
void JobRun::done(std::uint32_t i, int host, Time when) {
  const JobNode& node = graph_.nodes[i];
  if (node.label != 0) {
    note(i, src_of(node), when);
    if (node.moves()) note(i, dst_of(node), when);
  }
  const int sender = node.is() == JobKind::kTransfer ? src_of(node) : -1;
  graph_.for_each_successor(i, [&](std::uint32_t next) {
    if (src_of(graph_.nodes[next]) != sender) let(next, host, when);
  });
  if (node.outside) round_done(when);
}

void JobRun::round_done(Time when) {
  last_done_ = std::max(last_done_, when);
  if (--outside_left_ > 0) return;
  hosts_.spans.push_back({.begin = began_, .end = last_done_, .workload = workload_});
  const Time next = last_done_ + std::max(spec_.off, hosts_.elsewhere);
  if (next < spec_.stop && (spec_.rounds == 0 || begun_ < spec_.rounds)) begin_round(next);
}

// a label is done at a host when all its nodes there are
void JobRun::note(std::uint32_t i, int host, Time when) {
  const std::uint16_t label = graph_.nodes[i].label;
  Span& open = span(host, label);
  open.begin = std::min(open.begin, ready_[i]);
  open.end = std::max(open.end, when);
  if (--open.left > 0) return;
  hosts_.spans.push_back({.begin = open.begin,
                          .end = open.end,
                          .workload = workload_,
                          .label = graph_.labels[label],
                          .host = host});
  open = {.nodes = open.nodes, .left = open.nodes};
}

}  // namespace dcqcn
