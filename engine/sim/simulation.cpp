#include "sim/simulation.hpp"

#include <algorithm>
#include <stdexcept>

namespace dcqcn {

std::uint64_t IntervalData::counted(std::string_view counter) const {
  std::uint64_t sum = 0;
  for (const SchemeReport& scheme : schemes) {
    for (std::size_t i = 0; i < scheme.counters.size(); ++i) {
      if (scheme.names->counters[i] == counter) sum += scheme.counters[i];
    }
  }
  return sum;
}

std::vector<std::string_view> IntervalData::own_counters() const {
  std::vector<std::string_view> own;
  for (const SchemeReport& scheme : schemes) {
    for (const std::string_view name : scheme.names->counters) {
      const bool known = std::find(own.begin(), own.end(), name) != own.end();
      if (!known && name != "cuts" && name != "increases") own.push_back(name);
    }
  }
  return own;
}

Simulation::Simulation(const std::string& compiled, std::uint64_t seed, const EngineFactory& make)
    : scenario_(Scenario::parse(compiled)),
      topology_(scenario_),
      source_(scenario_, topology_.smallest_delay(), seed),
      transport_(scenario_, topology_, source_, log_),
      monitor_(scenario_.monitor, static_cast<int>(scenario_.switches.size()), seed),
      engine_(make(World{scenario_, topology_, source_, transport_, log_, monitor_, seed})) {}

void Simulation::apply(const SiRows& nics, std::vector<EcnSetting> ecns) {
  if (ecns.size() != static_cast<std::size_t>(topology_.port_count())) {
    throw std::invalid_argument("apply: expected one marking curve per port");
  }
  Change change{now_ + scenario_.transport.dispatch_delay, transport_.schemes().read_settings(nics),
                std::move(ecns)};
  if (change.when == now_) {
    put_in_force(change);
  } else {
    changes_.push_back(std::move(change));
  }
}

void Simulation::put_in_force(const Change& change) {
  transport_.change_settings(change.nics, change.when);
  engine_->set_ecn(change.ecns);
  if (transport_.windowed()) engine_->settings_changed(change.when);
}

void Simulation::advance(Time until) {
  if (until < now_) throw std::invalid_argument("advance: time does not run backwards");
  if (until > kEndOfTime) {
    throw std::invalid_argument("advance: time ends at " + std::to_string(kEndOfTime) +
                                " ps (36,028 s), which is as long as packets know when they left; "
                                "expected at most that");
  }
  while (!changes_.empty() && changes_.front().when < until) {
    engine_->run(changes_.front().when);
    put_in_force(changes_.front());
    changes_.pop_front();
  }
  engine_->run(until);
  now_ = until;
}

const IntervalData& Simulation::report() {
  ++data_.index;
  data_.start = data_.end;
  data_.end = now_;
  transport_.flush_rtts();
  log_.sort();
  source_.jobs().take_spans(log_.job_spans);
  engine_->report_ports(now_, data_.ports);
  monitor_.end_interval(now_, data_.fsd);
  transport_.schemes().take_counters(data_.schemes);
  data_.active_flows = transport_.live_flows();
  data_.unlimited_flows = transport_.unlimited_flows();
  totals_.add(log_.totals);
  std::swap(data_.log, log_);
  log_.clear();
  return data_;
}

}  // namespace dcqcn
