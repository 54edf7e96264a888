// The traffic monitors of a scenario: what the ToRs count per packet, what their control planes
// make of it at the end of an interval, and the network-wide distribution at the controller.
// A packet is recorded once, at the first switch on its way.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/elastic_sketch.hpp"
#include "model/flow_run.hpp"
#include "model/flow_states.hpp"
#include "model/flow_table.hpp"
#include "model/fsd.hpp"
#include "model/monitor_config.hpp"
#include "model/random_stream.hpp"
#include "model/units.hpp"

namespace dcqcn {

/// One flow that was active in the last interval, as counted exactly and as the monitor saw it.
struct FlowLabel {
  std::uint32_t key = 0;
  std::uint32_t tor = 0;
  std::uint64_t interval_bytes = 0;      // true
  std::uint64_t total_bytes = 0;         // true, since its first packet
  std::uint64_t seen_bytes = 0;          // bytes so far according to the monitor
  double elephant_share = 0.0;           // according to the monitor, in 0..1
  FlowState state = FlowState::kUnseen;  // according to the monitor
};

/// One recorded packet of a trace.
struct TracedPacket {
  std::uint32_t key = 0;
  std::uint16_t tor = 0;
  std::uint16_t payload_bytes = 0;
};

class Monitor {
 public:
  /// `switches` bounds the ToR numbers; one that never sees a packet costs next to nothing.
  Monitor(const MonitorConfig& config, int switches, std::uint64_t seed);

  bool wants_packets() const { return path_ != Path::kIgnore; }

  /// Counts a data packet. Calls for one ToR come in the order in which it receives them.
  void record(int tor, std::uint32_t flow_key, std::uint32_t payload_bytes) {
    Tor& t = tors_[static_cast<std::size_t>(tor)];
    if (!t.used) [[unlikely]]
      prepare(t, tor);
    if (path_ == Path::kForStudy) [[unlikely]] {
      note_for_study(t, tor, flow_key, payload_bytes);
      count(inner_, t, flow_key, payload_bytes);
    } else {
      count(path_, t, flow_key, payload_bytes);
    }
  }

  /// Counts packets of several ports at once, exactly as record() would in order of arrival, and
  /// returns true; or returns false and has counted nothing, where the order may matter. `runs` are
  /// weighted by weight_of() and come in any order.
  bool record_runs(int tor, std::vector<FlowRun>& runs);
  /// False: record_runs() never succeeds with this monitor.
  bool takes_runs() const {
    return path_ == Path::kCount || path_ == Path::kSketchBytes || path_ == Path::kSketchPackets;
  }
  std::uint32_t weight_of(std::uint32_t payload_bytes) const {
    return path_ == Path::kSketchPackets ? 1 : payload_bytes;
  }

  /// Ends the interval at `now`: reads and resets the counters and fills in `out`.
  void end_interval(Time now, FsdReport& out);

  /// With config.labels: every flow active in the last interval, by ToR and first packet.
  const std::vector<FlowLabel>& labels() const { return labels_; }
  /// With config.trace: the packets recorded since the last call, per ToR in order.
  std::vector<TracedPacket> take_trace() { return std::exchange(trace_, {}); }
  const MonitorConfig& config() const { return config_; }
  std::size_t switches() const { return tors_.size(); }

 private:
  enum class Path : std::uint8_t {
    kIgnore,
    kCount,
    kSketchBytes,
    kSketchPackets,
    kSample,
    kForStudy,
  };

  struct Verdict {
    std::uint64_t bytes = 0;
    double elephant_share = 0.0;
    FlowState state = FlowState::kUnseen;
  };

  struct Tor {
    bool used = false;
    RandomStream samples;
    ElasticSketch sketch;
    FlowTable<std::uint64_t> counts;
    FlowStates states;
    LocalFsd local;  // being summed, or held until the next export or upload
    LocalFsd sent;   // what the controller has
    FlowTable<std::uint64_t> truth_now, truth_ever;
    FlowTable<Verdict> verdicts;
  };

  static Path path_of(const MonitorConfig& config);
  void prepare(Tor& t, int tor);
  void count(Path path, Tor& t, std::uint32_t flow_key, std::uint32_t payload_bytes) {
    switch (path) {
      case Path::kCount:
        t.counts[flow_key] += payload_bytes;
        break;
      case Path::kSketchBytes:
        t.sketch.insert(flow_key, payload_bytes);
        break;
      case Path::kSketchPackets:
        t.sketch.insert(flow_key, 1);
        break;
      case Path::kSample:
        // the n-th packet of a ToR is sampled or not whatever else happens
        if (t.samples.next() < sample_below_) t.counts[flow_key] += payload_bytes;
        break;
      case Path::kForStudy:
      case Path::kIgnore:
        break;
    }
  }
  void note_for_study(Tor& t, int tor, std::uint32_t flow_key, std::uint32_t payload_bytes);
  template <typename F>
  void read_and_reset(Tor& t, F&& f);
  void judge(Tor& t, std::uint32_t key, std::uint64_t bytes, const FlowStates::Observed& seen);
  void judge_alone(Tor& t, std::uint32_t key, std::uint64_t bytes);
  void end_ternary(Time now, FsdReport& out);
  void end_naive(FsdReport& out);
  void end_netflow(Time now, FsdReport& out);
  void end_chameleon(Time now, FsdReport& out);
  void list_labels();
  void report_cost(FsdReport& out) const;

  MonitorConfig config_;
  Path path_ = Path::kIgnore;
  Path inner_ = Path::kIgnore;  // the path without truth and trace
  std::uint64_t seed_ = 0;
  std::uint64_t sample_below_ = 0;
  std::vector<Tor> tors_;
  KlTrigger trigger_;
  Time next_local_ = 0;
  Time next_send_ = 0;
  bool sent_once_ = false;
  std::vector<FlowLabel> labels_;
  std::vector<TracedPacket> trace_;
  std::vector<FlowRun> missed_;
};

}  // namespace dcqcn
