// The traffic monitor of a scenario: what the ToRs count per packet, what their control planes
// make of it at the end of an interval, and the network-wide distribution at the controller.
// A packet is recorded once, at the first switch on its way.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "model/base/archive.hpp"
#include "model/base/units.hpp"
#include "model/monitors/flow_run.hpp"
#include "model/monitors/fsd.hpp"
#include "model/monitors/monitor_config.hpp"
#include "model/monitors/monitor_study.hpp"

namespace dcqcn {

class Monitor {
 public:
  using FlowLogRows = std::vector<monitors::FlowLogRow>;

  /// `switches` bounds the ToR numbers; one that never sees a packet costs next to nothing.
  Monitor(const MonitorConfig& config, int switches, std::uint64_t seed);

  bool wants_packets() const { return wants_packets_; }

  /// Counts a data packet. Calls for one ToR come in the order in which it receives them.
  void record(int tor, std::uint32_t flow_key, std::uint32_t payload_bytes) {
    if (study_ != nullptr) [[unlikely]]
      study_->note(tor, flow_key, payload_bytes);
    record_(kind_, tor, flow_key, payload_bytes);
  }

  /// Counts packets of several ports at once, exactly as record() would in order of arrival, and
  /// returns true; or returns false and has counted nothing, where the order may matter. `runs` are
  /// weighted by weight_of() and come in any order.
  bool record_runs(int tor, std::vector<FlowRun>& runs);
  /// False: record_runs() never succeeds with this monitor.
  bool takes_runs() const { return takes_runs_; }
  /// May ToRs record at the same time?
  bool tors_apart() const { return study_ == nullptr; }
  std::uint32_t weight_of(std::uint32_t payload_bytes) const {
    return counts_packets_ ? 1 : payload_bytes;
  }

  /// Ends the interval at `now`: reads and resets the counters and fills in `out`.
  void end_interval(Time now, FsdReport& out);

  /// With option labels: every flow active in the last interval, by ToR and first packet.
  std::vector<FlowLabel> labels() const;
  /// With option trace: the packets recorded since the last call, per ToR in order.
  std::vector<TracedPacket> take_trace();
  /// The flow log of the last interval; throws std::invalid_argument if the kind keeps none.
  const FlowLogRows& flow_log() const;
  std::size_t switches() const { return switches_; }

  void visit(Archive& a) {
    a.all<Monitor>(kind_, built(record_), study_, built(wants_packets_), built(takes_runs_),
                   built(counts_packets_), trigger_, verdicts_, built(switches_));
  }

 private:
  using Record = void (*)(monitors::Kinds::Any&, int, std::uint32_t, std::uint32_t);

  monitors::Kinds::Any kind_;
  Record record_ = nullptr;              // of the kind: bound once, it runs for every packet
  std::unique_ptr<MonitorStudy> study_;  // null: neither labels nor trace are wanted
  bool wants_packets_ = false;
  bool takes_runs_ = false;
  bool counts_packets_ = false;
  KlTrigger trigger_;
  monitors::Verdicts verdicts_;
  std::size_t switches_;
};

}  // namespace dcqcn
