#include "model/monitor.hpp"

namespace dcqcn {

namespace {

// the first instant of the grid 0, step, 2 step, ... after `now`
Time next_after(Time now, Time step) { return (now / step + 1) * step; }

bool counts_exactly(MonitorKind kind) { return kind == MonitorKind::kExact; }

bool uses_sketch(MonitorKind kind) {
  return kind == MonitorKind::kElastic || kind == MonitorKind::kElasticNaive ||
         kind == MonitorKind::kChameleon;
}

}  // namespace

Monitor::Path Monitor::path_of(const MonitorConfig& config) {
  if (counts_exactly(config.kind)) return Path::kCount;
  if (uses_sketch(config.kind)) {
    return config.count_packets ? Path::kSketchPackets : Path::kSketchBytes;
  }
  return config.kind == MonitorKind::kNetflow ? Path::kSample : Path::kIgnore;
}

Monitor::Monitor(const MonitorConfig& config, int switches, std::uint64_t seed)
    : config_(config),
      path_(path_of(config)),
      inner_(path_),
      seed_(seed),
      tors_(static_cast<std::size_t>(switches)),
      trigger_(config.theta),
      next_local_(config.local_every),
      next_send_(config.kind == MonitorKind::kNetflow ? config.export_every : config.upload_every) {
  if (config_.labels || config_.trace) path_ = Path::kForStudy;
  // 2^64 / n, exactly every packet for n = 1 but for one draw in 2^64
  sample_below_ = ~std::uint64_t{0} / config_.sample_one_in;
}

void Monitor::prepare(Tor& t, int tor) {
  t.used = true;
  t.local.node = static_cast<std::uint32_t>(tor);
  if (config_.kind == MonitorKind::kChameleon) t.local.periods = 0;
  t.samples = RandomStream(seed_, Purpose::kMonitor, static_cast<std::uint64_t>(tor));
  t.states = FlowStates(config_.states);
  if (!uses_sketch(config_.kind)) return;
  // a switch's hash functions belong to the switch, not to the seed of the traffic
  t.sketch = ElasticSketch(
      config_.heavy_bytes, config_.light_bytes,
      config_.count_packets ? ElasticSketch::Light::kBits8 : ElasticSketch::Light::kBits32,
      static_cast<std::uint64_t>(tor) + 1);
}

void Monitor::note_for_study(Tor& t, int tor, std::uint32_t flow_key, std::uint32_t payload_bytes) {
  if (config_.trace) {
    trace_.push_back(
        {flow_key, static_cast<std::uint16_t>(tor), static_cast<std::uint16_t>(payload_bytes)});
  }
  if (config_.labels) {
    t.truth_now[flow_key] += payload_bytes;
    t.truth_ever[flow_key] += payload_bytes;
  }
}

bool Monitor::record_runs(int tor, std::vector<FlowRun>& runs) {
  if (!takes_runs()) return false;
  Tor& t = tors_[static_cast<std::size_t>(tor)];
  if (runs.empty()) return true;
  if (!t.used) prepare(t, tor);
  if (path_ != Path::kCount) return t.sketch.insert_runs(runs, missed_);
  missed_.clear();
  for (const FlowRun& run : runs) {
    if (std::uint64_t* counted = t.counts.find(run.key); counted != nullptr) {
      *counted += run.weight;
    } else {
      missed_.push_back(run);
    }
  }
  sort_by_arrival(missed_);
  for (const FlowRun& run : missed_) t.counts[run.key] += run.weight;
  return true;
}

template <typename F>
void Monitor::read_and_reset(Tor& t, F&& f) {
  if (uses_sketch(config_.kind)) {
    const auto unit = static_cast<std::uint64_t>(config_.count_packets ? config_.packet_bytes : 1);
    t.sketch.for_each([&](std::uint32_t key, std::uint64_t total) { f(key, total * unit); });
    t.sketch.reset();
  } else {
    t.counts.for_each(f);
    t.counts.clear();
  }
}

void Monitor::judge(Tor& t, std::uint32_t key, std::uint64_t bytes,
                    const FlowStates::Observed& seen) {
  t.local.add(seen.state, bytes, seen.elephant_share);
  if (config_.labels) t.verdicts[key] = {bytes, seen.elephant_share, seen.state};
}

void Monitor::judge_alone(Tor& t, std::uint32_t key, std::uint64_t bytes) {
  const bool elephant = bytes >= static_cast<std::uint64_t>(config_.states.tau);
  judge(t, key, bytes,
        {elephant ? FlowState::kElephant : FlowState::kMouse, bytes, elephant ? 1.0 : 0.0});
}

void Monitor::end_interval(Time now, FsdReport& out) {
  out = FsdReport{};
  switch (config_.kind) {
    case MonitorKind::kNone:
      out.known = false;
      break;
    case MonitorKind::kExact:
    case MonitorKind::kElastic:
      end_ternary(now, out);
      break;
    case MonitorKind::kElasticNaive:
      end_naive(out);
      break;
    case MonitorKind::kNetflow:
      end_netflow(now, out);
      break;
    case MonitorKind::kChameleon:
      end_chameleon(now, out);
      break;
  }
  trigger_.update(out);
  report_cost(out);
  if (config_.labels) list_labels();
}

void Monitor::end_ternary(Time now, FsdReport& out) {
  for (Tor& t : tors_) {
    if (!t.used) continue;
    t.local = LocalFsd{.node = t.local.node};
    t.verdicts.clear();
    read_and_reset(t, [&](std::uint32_t key, std::uint64_t bytes) {
      const FlowStates::Observed seen = t.states.observe(key, bytes, now);
      judge(t, key, seen.phi, seen);
    });
    t.local.untracked = static_cast<std::uint32_t>(t.states.untracked());
    t.states.end_interval();
    out.add(t.local);
    out.monitor_bytes += sizeof(LocalFsd);
  }
}

void Monitor::end_naive(FsdReport& out) {
  for (Tor& t : tors_) {
    if (!t.used) continue;
    t.local = LocalFsd{.node = t.local.node};
    t.verdicts.clear();
    read_and_reset(t, [&](std::uint32_t key, std::uint64_t bytes) { judge_alone(t, key, bytes); });
    out.add(t.local);
    out.monitor_bytes += sizeof(LocalFsd);
  }
}

// Flow records travel; between two exports the controller holds the last one.
void Monitor::end_netflow(Time now, FsdReport& out) {
  const bool due = now >= next_send_;
  if (due) {
    next_send_ = next_after(now, config_.export_every);
    sent_once_ = true;
  }
  for (Tor& t : tors_) {
    if (!t.used) continue;
    if (due) {
      t.local = LocalFsd{.node = t.local.node};
      t.verdicts.clear();
      out.monitor_bytes += netflow_export_bytes(static_cast<std::int64_t>(t.counts.size()));
      read_and_reset(t, [&](std::uint32_t key, std::uint64_t bytes) {
        judge_alone(t, key, bytes * config_.sample_one_in);
      });
      t.sent = t.local;
    }
    out.add(t.sent);
  }
  out.known = sent_once_;
}

// Local statistics every short period, their mean over the periods with data every long one.
void Monitor::end_chameleon(Time now, FsdReport& out) {
  const bool local_due = now >= next_local_, upload_due = now >= next_send_;
  if (local_due) next_local_ = next_after(now, config_.local_every);
  if (upload_due) {
    next_send_ = next_after(now, config_.upload_every);
    sent_once_ = true;
  }
  for (Tor& t : tors_) {
    if (!t.used) continue;
    if (local_due) {
      t.verdicts.clear();
      const bool data = t.sketch.touched_buckets() > 0;
      read_and_reset(t,
                     [&](std::uint32_t key, std::uint64_t bytes) { judge_alone(t, key, bytes); });
      t.local.periods += data;
    }
    if (upload_due) {
      t.sent = t.local;
      t.local = LocalFsd{.node = t.sent.node, .periods = 0};
      out.monitor_bytes += sizeof(LocalFsd);
    }
    out.add(t.sent);
  }
  out.known = sent_once_;
}

void Monitor::list_labels() {
  labels_.clear();
  for (std::size_t i = 0; i < tors_.size(); ++i) {
    Tor& t = tors_[i];
    t.truth_now.for_each([&](std::uint32_t key, std::uint64_t bytes) {
      FlowLabel label{.key = key, .tor = static_cast<std::uint32_t>(i), .interval_bytes = bytes};
      label.total_bytes = *t.truth_ever.find(key);
      if (const Verdict* verdict = t.verdicts.find(key); verdict != nullptr) {
        label.seen_bytes = verdict->bytes;
        label.elephant_share = verdict->elephant_share;
        label.state = verdict->state;
      }
      labels_.push_back(label);
    });
    t.truth_now.clear();
  }
}

void Monitor::report_cost(FsdReport& out) const {
  for (const Tor& t : tors_) {
    if (!t.used || config_.kind == MonitorKind::kNone) continue;
    const bool sketch = uses_sketch(config_.kind);
    out.data_plane_bytes +=
        sketch ? t.sketch.memory_bytes() : static_cast<std::int64_t>(t.counts.memory_bytes());
    out.control_plane_bytes += static_cast<std::int64_t>(t.states.peak_bytes());
    out.tracked_flows += static_cast<std::int64_t>(t.states.tracked());
    out.untracked_flows += static_cast<std::int64_t>(t.states.untracked());
  }
}

}  // namespace dcqcn
