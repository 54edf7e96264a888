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
    : Simulation(Network::of(compiled), seed, make) {}

Simulation::Simulation(const Simulation& other, std::uint64_t seed)
    : Simulation(other.network_, seed, other.make_) {}

Simulation::Simulation(const Network& network, std::uint64_t seed, const EngineFactory& make)
    : network_(network),
      seed_(seed),
      make_(make),
      source_(scenario(), topology().smallest_delay(), seed),
      transport_(scenario(), topology(), source_, log_),
      monitor_(scenario().monitor, static_cast<int>(scenario().switches.size()), seed),
      engine_(make(World{scenario(), topology(), source_, transport_, log_, monitor_, seed})) {}

Simulation::Network Simulation::Network::of(const std::string& compiled) {
  auto scenario = std::make_shared<const Scenario>(Scenario::parse(compiled));
  auto topology = std::make_shared<const Topology>(*scenario);
  std::uint64_t key = 0;
  for (const char c : compiled) key = mix64(key ^ static_cast<unsigned char>(c));
  return {std::move(scenario), std::move(topology), key};
}

// ---- snapshots ----

void Simulation::visit(Archive& a) {
  std::uint64_t name = mix64(network_.key ^ mix64(seed_));
  const std::uint64_t mine = name;
  a(name);
  if (name != mine) a.refuse();
  a.all<Simulation>(built(network_), built(seed_), built(make_), source_, log_, transport_,
                    monitor_, engine_, changes_, in_force_, data_, totals_, now_);
  a.end();
}

std::string Simulation::snapshot() {
  Archive a;
  visit(a);
  return a.take();
}

void Simulation::restore(const std::string& bytes) {
  Archive a(bytes);
  visit(a);
  if (!in_force_.empty()) transport_.schemes().put_in_force(read(in_force_));
  for (Change& change : changes_) change.nics = read(change.rows);
}

std::unique_ptr<Simulation> Simulation::clone() {
  const std::string bytes = snapshot();
  auto copy = std::make_unique<Simulation>(*this, seed_);
  copy->restore(bytes);
  return copy;
}

NicSettings Simulation::read(const std::vector<double>& rows) const {
  const auto hosts = static_cast<std::size_t>(topology().hosts());
  return transport_.schemes().read_settings({rows.data(), hosts, rows.size() / hosts});
}

void Simulation::apply(const SiRows& nics, std::vector<EcnSetting> ecns) {
  if (ecns.size() != static_cast<std::size_t>(topology().port_count())) {
    throw std::invalid_argument("apply: expected one marking curve per port");
  }
  NicSettings read = transport_.schemes().read_settings(nics);
  Change change{now_ + scenario().transport.dispatch_delay,
                {nics.values, nics.values + nics.rows * nics.columns},
                std::move(read),
                std::move(ecns)};
  if (change.when == now_) {
    put_in_force(change);
  } else {
    changes_.push_back(std::move(change));
  }
}

void Simulation::put_in_force(const Change& change) {
  transport_.change_settings(change.nics, change.when);
  in_force_ = change.rows;
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
