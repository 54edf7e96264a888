#include "model/monitors/monitor.hpp"

#include <memory>
#include <stdexcept>

#include "check.hpp"
#include "model/base/det_math.hpp"

namespace {

using dcqcn::FsdReport;
using dcqcn::Monitor;
using dcqcn::MonitorConfig;

constexpr dcqcn::Time kMs = 1'000'000'000;

// of a monitor line: a kind, then more keys
MonitorConfig config_of(const std::string& line) {
  return MonitorConfig::read(dcqcn::Line("monitor kind=" + line, 1));
}

void send(Monitor& monitor, int tor, std::uint32_t key, std::int64_t bytes) {
  for (; bytes > 0; bytes -= 1000)
    monitor.record(tor, key, static_cast<std::uint32_t>(bytes < 1000 ? bytes : 1000));
}

void bins_double_from_2_kib() {
  CHECK_EQ(dcqcn::fsd_bin(0), 0);
  CHECK_EQ(dcqcn::fsd_bin(2047), 0);
  for (std::size_t i = 1; i < 16; ++i) {
    CHECK_EQ(dcqcn::fsd_bin(std::uint64_t{1} << (10 + i)), i);
    CHECK_EQ(dcqcn::fsd_bin((std::uint64_t{1} << (11 + i)) - 1), i);
  }
  CHECK_EQ(dcqcn::fsd_bin(std::uint64_t{1} << 40), 15);
}

void divergence_by_hand() {
  // {30, 70} after {10, 90}: 0.5 is added to each count
  const double p = 30.5 / 101, q = 10.5 / 101;
  const double expected = p * dcqcn::det_log(p / q) + (1 - p) * dcqcn::det_log((1 - p) / (1 - q));
  const double kl = dcqcn::kl_divergence(30, 70, 10, 90);
  CHECK_BETWEEN(kl, expected - 1e-12, expected + 1e-12);
  CHECK_BETWEEN(kl, 0.1476, 0.1478);
  CHECK_EQ(dcqcn::kl_divergence(5, 5, 5, 5), 0.0);
  CHECK(dcqcn::kl_divergence(0, 400, 400, 0) > 1.0);  // empty counts stay finite
}

void idle_intervals_are_skipped() {
  for (const char* kind : {"exact", "elastic", "elastic-naive"}) {
    Monitor monitor(config_of(kind), 2, 1);
    FsdReport out;
    monitor.end_interval(kMs, out);
    CHECK(!out.triggered && out.kl == 0.0 && out.known && out.flows() == 0.0);
    for (std::uint32_t f = 1; f <= 20; ++f) send(monitor, f % 2, f, 1'500'000);
    monitor.end_interval(2 * kMs, out);
    CHECK(out.triggered && out.kl == 0.0);  // the first distribution
    CHECK_EQ(out.elephants, 20);
    monitor.end_interval(3 * kMs, out);
    CHECK(!out.triggered && out.kl == 0.0 && out.flows() == 0.0);
    for (std::uint32_t f = 101; f <= 120; ++f) send(monitor, f % 2, f, 1'500'000);
    monitor.end_interval(4 * kMs, out);
    CHECK(!out.triggered && out.kl == 0.0);  // as before the pause
    for (std::uint32_t f = 201; f <= 220; ++f) send(monitor, f % 2, f, 1'500);
    monitor.end_interval(5 * kMs, out);
    CHECK(out.triggered && out.kl > 1.0);
    CHECK_EQ(out.bins[0], 20);
  }
}

void states_and_weights_add_up() {
  for (const char* kind : {"exact", "elastic"}) {
    Monitor monitor(config_of(kind), 3, 1);
    FsdReport out;
    for (int i = 1; i <= 3; ++i) {
      send(monitor, 0, 1, 600'000);
      send(monitor, 1, 2, 100'000);
      send(monitor, 2, static_cast<std::uint32_t>(10 + i), 500);
      monitor.end_interval(i * kMs, out);
    }
    CHECK_EQ(out.elephants, 1);
    CHECK_EQ(out.potential, 1);
    CHECK_EQ(out.mice, 1);
    CHECK_BETWEEN(out.weighted_elephants, 1.3 - 1e-9, 1.3 + 1e-9);
    CHECK_BETWEEN(out.weighted_mice, 1.7 - 1e-9, 1.7 + 1e-9);
    CHECK_EQ(out.bins[0], 1);                        // 500 B
    CHECK_EQ(out.bins[dcqcn::fsd_bin(300'000)], 1);  // bytes so far, not of the interval
    CHECK_EQ(out.bins[dcqcn::fsd_bin(1'800'000)], 1);
    CHECK_EQ(out.monitor_bytes, 3 * 96);
    CHECK(out.data_plane_bytes > 0 && out.control_plane_bytes > 0);
  }
}

void naive_forgets_between_intervals() {
  Monitor monitor(config_of("elastic-naive"), 1, 1);
  FsdReport out;
  for (int i = 1; i <= 4; ++i) {
    send(monitor, 0, 1, 600'000);
    monitor.end_interval(i * kMs, out);
    CHECK(out.elephants == 0 && out.mice == 1 && out.potential == 0);
  }
}

void none_counts_nothing() {
  Monitor monitor(config_of("none"), 1, 1);
  CHECK(!monitor.wants_packets());
  FsdReport out;
  monitor.end_interval(kMs, out);
  CHECK(!out.known && !out.triggered && out.monitor_bytes == 0 && out.data_plane_bytes == 0);
}

// sketch and exact counter see the same thing while the sketch is not short of memory
void a_large_sketch_is_exact() {
  Monitor exact(config_of("exact"), 4, 1), elastic(config_of("elastic"), 4, 1);
  FsdReport a, b;
  dcqcn::RandomStream random(3, dcqcn::Purpose::kMonitor, 0);
  for (int i = 1; i <= 30; ++i) {
    for (int n = 0; n < 20000; ++n) {
      const auto flow = 1 + random.below(400) + 200u * static_cast<std::uint32_t>(i);
      for (Monitor* m : {&exact, &elastic}) m->record(static_cast<int>(flow % 4), flow, 1000);
    }
    exact.end_interval(i * kMs, a);
    elastic.end_interval(i * kMs, b);
    CHECK(a.elephants == b.elephants && a.potential == b.potential && a.mice == b.mice);
    CHECK(a.weighted_elephants == b.weighted_elephants && a.kl == b.kl && a.bins == b.bins);
  }
}

// 380 long flows with pauses, and short flows that join for a while: every start and end of theirs
// triggers within three intervals, also right after a pause, and nothing in between does
void influx_triggers_at_its_edges() {
  Monitor monitor(config_of("elastic"), 8, 1);
  FsdReport out;
  dcqcn::RandomStream random(5, dcqcn::Purpose::kMonitor, 1);
  std::uint32_t mouse = 1'000'000;
  bool fired[100] = {};
  for (int i = 0; i < 100; ++i) {
    const bool long_flows = i < 50 || i >= 60;
    const bool influx = (i >= 20 && i < 40) || (i >= 60 && i < 80);
    const std::uint32_t base = i < 50 ? 0 : 10'000;
    for (std::uint32_t f = 1; f <= 380 && long_flows; ++f)
      send(monitor, f % 8, base + f, 300'000 + random.below(60'000));
    for (int n = 0; n < 2000 && influx; ++n, ++mouse)
      send(monitor, mouse % 8, mouse, 100 + random.below(2000));
    monitor.end_interval((i + 1) * kMs, out);
    fired[i] = out.triggered;
  }
  const auto any = [&](int from, int to) {
    bool yes = false;
    for (int i = from; i < to; ++i) yes |= fired[i];
    return yes;
  };
  CHECK(fired[0]);
  CHECK(any(20, 23) && any(40, 43) && any(60, 63) && any(80, 83));
  CHECK(!any(5, 20) && !any(24, 40) && !any(43, 60) && !any(64, 80) && !any(83, 100));
}

void netflow_samples_and_holds() {
  MonitorConfig config = config_of("netflow export_ps=5000000000 sample_one_in=100 labels=1");
  Monitor monitor(config, 1, 7);
  FsdReport out;
  double elephants = 0;
  for (int i = 1; i <= 10; ++i) {
    for (std::uint32_t f = 1; f <= 50; ++f) send(monitor, 0, f, 2'000'000);
    monitor.end_interval(i * kMs, out);
    CHECK(out.known == (i >= 5));
    if (i == 5) {
      elephants = out.elephants;
      CHECK_EQ(out.monitor_bytes, 50 * 48 + 2 * 24);
    } else {
      CHECK_EQ(out.monitor_bytes, i == 10 ? 50 * 48 + 2 * 24 : 0);
    }
    if (i > 5 && i < 10) CHECK(out.elephants == elephants && !out.triggered);
  }
  CHECK_EQ(elephants, 50);  // 10 MB each: 100 samples expected
  double seen = 0, truth = 0;
  for (const dcqcn::FlowLabel& label : monitor.labels()) {
    seen += static_cast<double>(label.seen_bytes);
    truth += 10e6;
    CHECK_EQ(label.total_bytes, 20'000'000);
    CHECK_EQ(label.interval_bytes, 2'000'000);
  }
  CHECK_BETWEEN(seen / truth, 0.95, 1.05);
}

void chameleon_uploads_the_mean_of_local_periods() {
  Monitor monitor(config_of("chameleon"), 2, 1);
  FsdReport out;
  for (int i = 1; i <= 200; ++i) {
    const int period = (i - 1) / 10;  // of 10 ms
    // 200 KB a ms makes an elephant of 10 ms, but of no single one; half the periods are idle
    if (period % 2 == 0) send(monitor, 0, 5, 200'000);
    if (period % 2 == 0 && period % 4 == 0) send(monitor, 1, 6, 100);
    monitor.end_interval(i * kMs, out);
    CHECK(out.known == (i >= 100));
    CHECK_EQ(out.monitor_bytes, i == 100 || i == 200 ? 2 * 96 : 0);
  }
  CHECK_EQ(out.elephants, 1);  // mean over the periods with data
  CHECK_EQ(out.mice, 1);
}

void labels_tell_truth_and_view() {
  Monitor monitor(config_of("elastic labels=1 heavy_bytes=64 light_bytes=4"), 1, 1);
  FsdReport out;
  for (std::uint32_t f = 1; f <= 20; ++f) send(monitor, 0, f, 10'000 + f);
  monitor.end_interval(kMs, out);
  CHECK_EQ(monitor.labels().size(), 20);
  int unseen = 0;
  for (const auto& label : monitor.labels()) {
    CHECK_EQ(label.interval_bytes, 10'000 + label.key);
    unseen += label.state == dcqcn::FlowState::kUnseen;
  }
  CHECK_EQ(unseen, 13);  // a bucket holds seven
}

// how many of 20 flows a sketch of two buckets shows, by its hash functions
int seen_of_twenty(const std::string& words) {
  Monitor monitor(config_of("elastic labels=1 heavy_bytes=128 light_bytes=4" + words), 1, 1);
  FsdReport out;
  for (std::uint32_t f = 1; f <= 20; ++f) send(monitor, 0, f, 10'000 + f);
  monitor.end_interval(kMs, out);
  int mask = 0;
  for (const auto& label : monitor.labels()) {
    mask |= static_cast<int>(label.state != dcqcn::FlowState::kUnseen) << label.key;
  }
  return mask;
}

void another_hash_seed_lets_other_flows_collide() {
  const int first = seen_of_twenty("");
  CHECK_EQ(first, seen_of_twenty(" hash_seed=0"));
  CHECK_EQ(seen_of_twenty(" hash_seed=1"), seen_of_twenty(" hash_seed=1"));
  CHECK(first != seen_of_twenty(" hash_seed=1"));
}

void a_trace_holds_every_packet() {
  for (const char* kind : {"elastic", "none"}) {
    const std::string one = kind;
    Monitor traced(config_of(one + " trace=1"), 2, 1), replayed(config_of(one), 2, 1);
    send(traced, 1, 7, 2500);
    send(traced, 0, 9, 1000);
    const auto trace = traced.take_trace();
    CHECK_EQ(trace.size(), 4);
    CHECK(trace[2].key == 7 && trace[2].tor == 1 && trace[2].payload_bytes == 500);
    CHECK(traced.take_trace().empty());
    for (const auto& p : trace) replayed.record(p.tor, p.key, p.payload_bytes);
    FsdReport a, b;
    traced.end_interval(kMs, a);
    replayed.end_interval(kMs, b);
    CHECK(a.bins == b.bins && a.known == b.known);
    CHECK_EQ(a.mice, b.mice);
  }
}

void results_depend_on_the_seed_only() {
  const auto run = [](std::uint64_t seed) {
    MonitorConfig config = config_of("netflow export_ps=1");
    Monitor monitor(config, 2, seed);
    FsdReport out;
    for (std::uint32_t f = 1; f <= 300; ++f) send(monitor, f % 2, f, 100'000);
    monitor.end_interval(kMs, out);
    return out.flows() * 1e6 + out.elephants;
  };
  CHECK(run(1) == run(1));
  CHECK(run(1) != run(2));
}

void refuses(const char* kind, const char* key, const char* value, const char* part) {
  std::string message;
  try {
    Monitor monitor(config_of(std::string(kind) + " " + key + "=" + value), 1, 1);
  } catch (const std::invalid_argument& error) {
    message = error.what();
  }
  if (!CHECK(message.find(part) != std::string::npos))
    std::printf("    %s=%s gave '%s'\n", key, value, message.c_str());
}

// the flows' order decides in which order states are made, so it has to be that of the arrivals
void runs_equal_packets() {
  for (const char* kind : {"exact", "elastic", "elastic-naive", "netflow", "none"}) {
    Monitor one_by_one(config_of(kind), 1, 1), in_runs(config_of(kind), 1, 1);
    int taken = 0;
    for (std::uint32_t window = 0; window < 50; ++window) {
      // three ports take turns; the last one finds a new flow first in every second window
      std::vector<dcqcn::FlowRun> runs;
      for (std::uint32_t port = 0; port < 3; ++port) {
        const std::uint64_t first = window % 2 ? port : 2 - port;
        runs.push_back({first, 1 + port + window / 10 * 3, in_runs.weight_of(1000 * (port + 1))});
      }
      const std::vector<dcqcn::FlowRun> sent = runs;
      for (const std::uint64_t turn : {0u, 1u, 2u}) {
        for (const auto& run : sent)
          if (run.order == turn) one_by_one.record(0, run.key, run.weight);
      }
      const bool whole = in_runs.record_runs(0, runs);
      CHECK(!whole || in_runs.takes_runs());
      taken += whole;
      for (const std::uint64_t turn : {0u, 1u, 2u}) {
        for (const auto& run : sent)
          if (!whole && run.order == turn) in_runs.record(0, run.key, run.weight);
      }
      if (window % 10 != 9) continue;
      FsdReport a, b;
      one_by_one.end_interval(window * kMs, a);
      in_runs.end_interval(window * kMs, b);
      CHECK(a.bins == b.bins);
      CHECK_EQ(a.mice, b.mice);
      CHECK_EQ(a.weighted_elephants, b.weighted_elephants);
      CHECK_EQ(a.kl, b.kl);
    }
    CHECK_EQ(taken > 0, in_runs.takes_runs());
  }
}

void bad_input_is_one_sentence() {
  refuses("elastics", "tau", "1",
          "unknown kind 'elastics'; did you mean 'elastic'? (known: none, exact, ");
  refuses("elastic", "tau", "0", "tau = '0'; expected a whole number from 1 to");
  refuses("elastic", "tau", "-5", "tau = '-5'; expected a whole number from 1 to");
  refuses("elastic", "tau", "1e6", "'1e6' is not a whole number");
  refuses("elastic", "delta", "0", "delta = '0'; expected a whole number from 1 to");
  refuses("elastic", "delta", "-1", "delta = '-1'; expected a whole number from 1 to");
  refuses("elastic", "heavy_bytes", "63", "heavy_bytes = '63'; expected a whole number from 64 to");
  refuses("elastic", "light_bytes", "3", "too small for one counter");
  refuses("elastic", "pe_weight", "half",
          "unknown pe_weight 'half' (known: ratio, logistic, survival)");
  refuses("elastic", "pe_weight", "survival", "sizes_cdf");
  refuses("elastic", "theta", "-1", "theta = '-1'; expected a number from 0 to");
  refuses("elastic", "theta", "nan", "theta = 'nan'; expected a number from 0 to");
  refuses("elastic", "colour", "1", "unknown key 'colour' (known: kind, tau, ");
  refuses("netflow", "sample_one_in", "0", "expected a whole number from 1 to");
}

}  // namespace

int main() {
  bins_double_from_2_kib();
  divergence_by_hand();
  idle_intervals_are_skipped();
  states_and_weights_add_up();
  naive_forgets_between_intervals();
  none_counts_nothing();
  a_large_sketch_is_exact();
  influx_triggers_at_its_edges();
  netflow_samples_and_holds();
  chameleon_uploads_the_mean_of_local_periods();
  labels_tell_truth_and_view();
  another_hash_seed_lets_other_flows_collide();
  a_trace_holds_every_packet();
  results_depend_on_the_seed_only();
  runs_equal_packets();
  bad_input_is_one_sentence();
  return dcqcn::check::result("monitor");
}
