#include "model/monitors/monitor.hpp"

#include <stdexcept>
#include <type_traits>

namespace dcqcn {

namespace {

template <std::size_t I = 0>
monitors::Kinds::Any kind_of(const MonitorConfig& config, const monitors::Place& place) {
  using Any = monitors::Kinds::Any;
  if (config.options.index() == I) {
    return Any(std::in_place_index<I>, std::get<I>(config.options), place);
  }
  if constexpr (I + 1 < std::variant_size_v<Any>) return kind_of<I + 1>(config, place);
  throw std::bad_variant_access();
}

}  // namespace

Monitor::Monitor(const MonitorConfig& config, int switches, std::uint64_t seed)
    : kind_(kind_of(config, {switches, seed})),
      trigger_(config.common().theta),
      verdicts_(config.common().labels ? switches : 0),
      switches_(static_cast<std::size_t>(switches)) {
  const auto& [tau, theta, labels, trace] = config.common();
  if (labels || trace) study_ = std::make_unique<MonitorStudy>(labels, trace, switches);
  std::visit(
      [&]<class K>(const K& kind) {
        using monitors::Kinds;
        wants_packets_ = K::kWantsPackets || study_ != nullptr;
        takes_runs_ = K::kTakesRuns && study_ == nullptr;  // a study sees every packet
        counts_packets_ = kind.counts_packets();
        record_ = [](Kinds::Any& any, int tor, std::uint32_t key, std::uint32_t bytes) {
          std::get_if<K>(&any)->record(tor, key, bytes);
        };
      },
      kind_);
}

bool Monitor::record_runs(int tor, std::vector<FlowRun>& runs) {
  return takes_runs_ && std::visit([&](auto& kind) { return kind.record_runs(tor, runs); }, kind_);
}

void Monitor::end_interval(Time now, FsdReport& out) {
  out = FsdReport{};
  std::visit([&](auto& kind) { kind.end_interval(now, out, verdicts_); }, kind_);
  trigger_.update(out);
  std::visit([&](const auto& kind) { kind.report_cost(out); }, kind_);
  if (study_ != nullptr) study_->end_interval(verdicts_);
}

std::vector<FlowLabel> Monitor::labels() const {
  return study_ == nullptr ? std::vector<FlowLabel>() : study_->labels();
}

std::vector<TracedPacket> Monitor::take_trace() {
  return study_ == nullptr ? std::vector<TracedPacket>() : study_->take_trace();
}

const Monitor::FlowLogRows& Monitor::flow_log() const {
  const auto* log = std::get_if<monitors::FlowLog>(&kind_);
  if (log == nullptr) {
    throw std::invalid_argument("this monitor keeps no flow log; expected kind=flow-log");
  }
  return log->rows();
}

}  // namespace dcqcn
