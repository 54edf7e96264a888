// NetFlow: sampled packets, exported now and then. Flow records travel; between two exports the
// controller holds the last one.
#pragma once

#include "model/base/random_stream.hpp"
#include "model/monitors/kind.hpp"

namespace dcqcn::monitors {

class Netflow {
 public:
  static constexpr const char* kName = "netflow";
  static constexpr bool kWantsPackets = true;
  static constexpr bool kTakesRuns = false;  // every packet is a draw

  struct Options : CommonOptions {
    std::uint32_t sample_one_in = 100;  // mean packets per sample
    Time export_every = kPicosPerSecond;
    bool operator==(const Options&) const = default;
  };
  static Fields<Options> fields() {
    return {
        {"sample_one_in",
         [](Options& o, const Value& v) {
           o.sample_one_in = static_cast<std::uint32_t>(v.whole(1, 1'000'000));
         }},
        {"export_ps",
         [](Options& o, const Value& v) { o.export_every = v.whole(1, kLongestPeriod); }},
    };
  }

  Netflow(const Options& options, const Place& place)
      : options_(options),
        seed_(place.seed),
        // 2^64 / n, exactly every packet for n = 1 but for one draw in 2^64
        sample_below_(~std::uint64_t{0} / options.sample_one_in),
        next_export_(options.export_every),
        tors_(place.switches) {}

  bool counts_packets() const { return false; }

  void record(int tor, std::uint32_t key, std::uint32_t payload_bytes) {
    Tor& t = tors_.at(tor, [&] { return fresh(tor); });
    // the n-th packet of a ToR is sampled or not whatever else happens
    if (t.samples.next() < sample_below_) t.counter.add(key, payload_bytes);
  }
  bool record_runs(int, std::vector<FlowRun>&) { return false; }

  void end_interval(Time now, FsdReport& out, Verdicts& verdicts) {
    const bool due = now >= next_export_;
    if (due) {
      next_export_ = next_after(now, options_.export_every);
      sent_once_ = true;
    }
    tors_.for_each([&](int tor, Tor& t) {
      if (due) {
        out.monitor_bytes += netflow_export_bytes(static_cast<std::int64_t>(t.counter.flows()));
        t.sent = local_of(tor);
        verdicts.begin(tor);
        t.counter.read_and_reset([&](std::uint32_t key, std::uint64_t bytes) {
          count(t.sent, verdicts, key, judge_alone(bytes * options_.sample_one_in, options_.tau));
        });
      }
      out.add(t.sent);
    });
    out.known = sent_once_;
  }

  void report_cost(FsdReport& out) const {
    tors_.for_each([&](int, const Tor& t) { out.data_plane_bytes += t.counter.memory_bytes(); });
  }

  void visit(Archive& a) {
    a.all<Netflow>(built(options_), built(seed_), built(sample_below_), next_export_, sent_once_,
                   tors_);
  }

 private:
  struct Tor {
    RandomStream samples;
    FlowCounter counter{};
    LocalFsd sent{};  // what the controller has

    void visit(Archive& a) { a.all<Tor>(samples, counter, sent); }
  };
  Tor fresh(int tor) const {
    return {.samples = {seed_, Purpose::kMonitor, static_cast<std::uint64_t>(tor)}};
  }

  Options options_;
  std::uint64_t seed_;
  std::uint64_t sample_below_;
  Time next_export_;
  bool sent_once_ = false;
  PerTor<Tor> tors_;
};

}  // namespace dcqcn::monitors
