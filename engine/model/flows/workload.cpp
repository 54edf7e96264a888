#include "model/flows/workload.hpp"

#include <algorithm>
#include <numeric>

#include "model/base/det_math.hpp"

namespace dcqcn {
namespace {

bool known_in_advance(Pattern pattern) {
  return pattern == Pattern::kFlows || pattern == Pattern::kStreams;
}

}  // namespace

FlowSource::FlowSource(const Scenario& scenario, Time smallest_delay, std::uint64_t seed)
    : scenario_(&scenario),
      smallest_delay_(smallest_delay),
      draws_(scenario.workloads.size()),
      rounds_(scenario.workloads.size()),
      begun_(scenario.workloads.size()),
      received_(scenario.workloads.size()),
      lists_(scenario.workloads.size()),
      jobs_(scenario, smallest_delay) {
  for (std::uint32_t w = 0; w < scenario.workloads.size(); ++w) {
    const WorkloadSpec& spec = scenario.workloads[w];
    const std::uint64_t id = static_cast<std::uint64_t>(w) << 32;
    reacting_.push_back(make_reacting(spec, w, seed));
    if (spec.pattern == Pattern::kPoisson) {
      begun_[w].resize(spec.hosts.size());
      for (std::uint32_t lane = 0; lane < spec.hosts.size(); ++lane) {
        draws_[w].emplace_back(seed, Purpose::kArrivals,
                               id + static_cast<std::uint64_t>(spec.hosts[lane]));
        const Time first = poisson_next(spec, draws_[w].back(), spec.start);
        if (first != kNever) lanes_.push({first, w, lane});
      }
    } else if (reacting_[w]) {
      for (std::uint32_t lane = 0; lane < reacting_[w]->lanes() && spec.start < spec.stop; ++lane) {
        lanes_.push({spec.start, w, lane});
      }
    } else if (spec.pattern == Pattern::kJob) {
      continue;
    } else if (known_in_advance(spec.pattern)) {
      lists_[w] = spec.pattern == Pattern::kFlows ? spec.transfers : draw_streams(spec, seed, id);
      std::stable_sort(lists_[w].begin(), lists_[w].end(),
                       [](const Transfer& a, const Transfer& b) { return a.start < b.start; });
      if (!lists_[w].empty()) lanes_.push({lists_[w].front().start, w, 0});
    } else {
      received_[w].resize(spec.hosts.size());
      draws_[w].emplace_back(seed, Purpose::kRounds, id);
      if (spec.start < spec.stop) lanes_.push({spec.start, w, 0});
    }
  }
}

// flow i goes from sender i to receiver i, both in turn, and starts at a random time
std::vector<Transfer> FlowSource::draw_streams(const WorkloadSpec& w, std::uint64_t seed,
                                               std::uint64_t id) {
  RandomStream draws(seed, Purpose::kArrivals, id);
  std::vector<Transfer> list;
  for (std::size_t i = 0; i < static_cast<std::size_t>(w.flows); ++i) {
    const Time after = static_cast<Time>(draws.uniform() * static_cast<double>(w.within));
    list.push_back({.src = w.hosts[i % w.hosts.size()],
                    .dst = w.dsts[i % w.dsts.size()],
                    .bytes = w.bytes,
                    .start = w.start + after});
  }
  return list;
}

// exponential gap from `after`; past the end of the window the process starts anew in the next
Time FlowSource::poisson_next(const WorkloadSpec& w, RandomStream& draws, Time after) const {
  while (true) {
    const double gap = -det_log(1.0 - draws.uniform()) * w.mean_gap;
    const Time when = after + static_cast<Time>(std::min(gap, 4e18));
    const Time period = w.repeat > 0 && after > w.start ? (after - w.start) / w.repeat : 0;
    const Time opens = w.start + period * w.repeat;
    const Time closes = w.stop == kNever ? kNever : w.stop + period * w.repeat;
    if (when < closes && when >= 0) return when;
    if (w.repeat <= 0) return kNever;
    after = opens + w.repeat;
  }
}

Bytes FlowSource::draw_size(const Cdf& cdf, double u) const {
  const auto above = std::lower_bound(
      cdf.begin(), cdf.end(), u, [](const CdfPoint& p, double v) { return p.probability < v; });
  double size = above->bytes;
  if (above != cdf.begin()) {  // below the first point lies its point mass
    const CdfPoint& low = *(above - 1);
    const double width = above->probability - low.probability;
    if (width > 0) size = low.bytes + (above->bytes - low.bytes) * ((u - low.probability) / width);
  }
  return std::max<Bytes>(1, static_cast<Bytes>(size + 0.5));
}

void FlowSource::emit_poisson(const Lane& lane, std::vector<FlowStart>& out) {
  const WorkloadSpec& w = scenario_->workloads[lane.workload];
  RandomStream& draws = draws_[lane.workload][lane.index];
  const int src = w.hosts[lane.index];
  // uniform over the destinations without the source itself
  const auto self = std::find(w.dsts.begin(), w.dsts.end(), src);
  const std::uint32_t n = static_cast<std::uint32_t>(w.dsts.size()) - (self != w.dsts.end());
  if (n == 0) return;
  std::size_t pick = draws.below(n);
  if (self != w.dsts.end() && pick >= static_cast<std::size_t>(self - w.dsts.begin())) ++pick;
  const Bytes bytes = draw_size(scenario_->cdfs[static_cast<std::size_t>(w.cdf)], draws.uniform());
  const std::uint32_t turn = begun_[lane.workload][lane.index]++;
  const Transfer t{.src = src, .dst = w.dsts[pick], .bytes = bytes, .start = lane.time};
  out.push_back(flow_of(w, lane.workload, t));
  out.back().connection =
      static_cast<std::uint16_t>(turn % static_cast<std::uint32_t>(w.connections));
  const Time next = poisson_next(w, draws, lane.time);
  if (next != kNever) lanes_.push({next, lane.workload, lane.index});
}

void FlowSource::emit_list(const Lane& lane, std::vector<FlowStart>& out) {
  const WorkloadSpec& w = scenario_->workloads[lane.workload];
  Rounds& state = rounds_[lane.workload];
  const auto& list = lists_[lane.workload];
  const Transfer& t = list[state.next_transfer++];
  out.push_back(flow_of(w, lane.workload, t));
  if (state.next_transfer < list.size()) {
    lanes_.push({list[state.next_transfer].start, lane.workload, 0});
  }
}

// A transfer of a round: its messages go to the connections of the two hosts in turn, and the next
// round goes on where this one ends.
static void add_transfer(const WorkloadSpec& w, std::uint64_t round, FlowStart flow,
                         std::vector<FlowStart>& out) {
  if (flow.src == flow.dst) return;
  const auto messages = static_cast<std::uint32_t>(w.messages);
  const auto connections = static_cast<std::uint32_t>(w.connections);
  const auto first =
      static_cast<std::uint32_t>(round % connections * (messages % connections) % connections);
  for (std::uint32_t i = 0; i < std::min(messages, connections); ++i) {
    flow.messages = (messages - i + connections - 1) / connections;
    flow.connection = static_cast<std::uint16_t>((first + i) % connections);
    out.push_back(flow);
  }
}

void FlowSource::emit_round(std::uint32_t workload, Time when, std::vector<FlowStart>& out) {
  const WorkloadSpec& w = scenario_->workloads[workload];
  const std::size_t before = out.size();
  const auto add = [&](int src, int dst, Bytes bytes) {
    const Transfer t{.src = src, .dst = dst, .bytes = bytes, .start = when};
    add_transfer(w, rounds_[workload].begun, flow_of(w, workload, t), out);
  };
  if (w.pattern == Pattern::kAllToAll) {
    // every worker begins with its successor, so that the first packets do not all meet
    const std::size_t n = w.hosts.size();
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = 1; k < n; ++k) add(w.hosts[i], w.hosts[(i + k) % n], w.bytes);
    }
  } else if (w.pattern == Pattern::kIncast) {
    for (int dst : w.dsts) {
      for (int src : w.hosts) add(src, dst, w.bytes);
    }
  } else if (w.pattern == Pattern::kPermutation) {
    // Sattolo's algorithm: a uniform cyclic permutation, so nobody sends to itself
    std::vector<int> to = w.hosts;
    for (std::size_t i = to.size(); i-- > 1;) {
      std::swap(to[i], to[draws_[workload][0].below(static_cast<std::uint32_t>(i))]);
    }
    for (std::size_t i = 0; i < to.size(); ++i) add(w.hosts[i], to[i], w.bytes);
  } else if (w.pattern == Pattern::kRing) {
    const std::size_t n = w.hosts.size();
    for (std::size_t i = 0; i < n; ++i) add(w.hosts[i], w.hosts[(i + 1) % n], w.bytes);
  } else {
    for (const Transfer& t : w.transfers) add(t.src, t.dst, t.bytes);
  }
  Rounds& state = rounds_[workload];
  ++state.begun;
  state.outstanding = 0;
  for (std::size_t i = before; i < out.size(); ++i) state.outstanding += out[i].messages;
  if (w.pattern == Pattern::kRing) state.outstanding *= static_cast<std::uint64_t>(w.steps);
}

void FlowSource::take_until(Time until, std::vector<FlowStart>& out) {
  while (!lanes_.empty() && lanes_.top().time < until) {
    const Lane lane = lanes_.top();
    lanes_.pop();
    switch (scenario_->workloads[lane.workload].pattern) {
      case Pattern::kPoisson:
        emit_poisson(lane, out);
        break;
      case Pattern::kFlows:
      case Pattern::kStreams:
        emit_list(lane, out);
        break;
      case Pattern::kStorage:
      case Pattern::kParameterServer:
        reacting_[lane.workload]->due(lane.index, lane.time, out);
        break;
      default:
        emit_round(lane.workload, lane.time, out);
    }
  }
}

void FlowSource::finished(std::uint32_t workload, std::uint32_t tag, int host, Time when) {
  const WorkloadSpec& w = scenario_->workloads[workload];
  if (w.pattern == Pattern::kJob) return jobs_.acked(workload, tag, host, when);
  if (w.pattern == Pattern::kPoisson || known_in_advance(w.pattern) || reacting_[workload]) return;
  Rounds& state = rounds_[workload];
  state.last_finish = std::max(state.last_finish, when);
  if (--state.outstanding > 0) return;
  const Time next = state.last_finish + std::max(w.off, smallest_delay_);
  if (next < w.stop && (w.rounds == 0 || state.begun < w.rounds)) lanes_.push({next, workload, 0});
}

// ring collectives: the k-th transfer received in a round starts the (k+1)-th transfer sent
void FlowSource::pass_on(std::uint32_t workload, int host, Time when, std::vector<FlowStart>& out) {
  const WorkloadSpec& w = scenario_->workloads[workload];
  std::size_t at = 0;
  while (w.hosts[at] != host) ++at;
  const std::uint32_t received = ++received_[workload][at];
  if (received % static_cast<std::uint32_t>(w.steps) == 0) return;
  const int next = w.hosts[(at + 1) % w.hosts.size()];
  const Transfer t{.src = host, .dst = next, .bytes = w.bytes, .start = when};
  out.push_back(flow_of(w, workload, t));
}

void FlowSource::arrived(std::uint32_t workload, std::uint32_t tag, int host, Time when,
                         std::vector<FlowStart>& out) {
  if (scenario_->workloads[workload].pattern == Pattern::kJob) {
    return jobs_.arrived(workload, tag, host, when);
  }
  if (!reacting_[workload]) return pass_on(workload, host, when, out);
  const Reacting::Wake wake = reacting_[workload]->arrived(tag, host, when, out);
  if (wake.time == kNever) return;
  lanes_.push({std::max(wake.time, when + smallest_delay_), workload, wake.index});
}

}  // namespace dcqcn
