// One simulation: owns every mutable thing, so that hundreds can live in one process.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "sim/engine.hpp"

namespace dcqcn {

// what one monitor interval reports; bindings.cpp turns it into IntervalReport
struct IntervalData {
  std::int64_t index = -1;  // counts from 0
  Time start = 0;
  Time end = 0;
  std::vector<PortReport> ports;
  IntervalLog log;
  std::vector<SchemeReport> schemes;
  FsdReport fsd;
  std::uint64_t active_flows = 0;     // that will finish
  std::uint64_t unlimited_flows = 0;  // that will not

  // sum over the schemes of their counters of this name
  std::uint64_t counted(std::string_view counter) const;
  // the names of all their counters but "cuts" and "increases", which every scheme has, each once
  std::vector<std::string_view> own_counters() const;
};

using EngineFactory = std::function<std::unique_ptr<Engine>(const World&)>;

class Simulation {
 public:
  // engine: "window" or "event"; throws std::invalid_argument
  Simulation(const std::string& compiled, std::uint64_t seed, const std::string& engine);
  Simulation(const std::string& compiled, std::uint64_t seed, const EngineFactory& make);

  // a row per host, of the knobs of its scheme, and a curve per port; in force from now on, or
  // dispatch_delay later
  void apply(const SiRows& nics, std::vector<EcnSetting> ecns);
  // run everything that happens before `until`
  void advance(Time until);
  // close the interval that began at the last report
  const IntervalData& report();

  // look at a port now, inside an open interval; changes nothing
  PortSample sample_port(int port) const { return engine_->sample_port(port, now_); }

  Time now() const { return now_; }
  Engine& engine() { return *engine_; }
  const Topology& topology() const { return topology_; }
  const Scenario& scenario() const { return scenario_; }
  const Totals& totals() const { return totals_; }
  Monitor& monitor() { return monitor_; }
  const TransportLayer& transport() const { return transport_; }
  NicSchemes& schemes() { return transport_.schemes(); }
  bool done() const { return source_.exhausted() && transport_.live_flows() == 0; }

 private:
  struct Change {
    Time when;
    NicSettings nics;
    std::vector<EcnSetting> ecns;
  };
  void put_in_force(const Change& change);

  Scenario scenario_;
  Topology topology_;
  FlowSource source_;
  IntervalLog log_;
  TransportLayer transport_;
  Monitor monitor_;
  std::unique_ptr<Engine> engine_;
  std::deque<Change> changes_;
  IntervalData data_;
  Totals totals_;
  Time now_ = 0;
};

}  // namespace dcqcn
