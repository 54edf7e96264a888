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

  // all but its number and its end is made anew by the next report
  void visit(Archive& a) {
    a.all<IntervalData>(index, built(start), end, built(ports), built(log), built(schemes),
                        built(fsd), built(active_flows), built(unlimited_flows));
  }

  // sum over the schemes of their counters of this name
  std::uint64_t counted(std::string_view counter) const;
  // the names of all their counters but "cuts" and "increases", which every scheme has, each once
  std::vector<std::string_view> own_counters() const;
};

using EngineFactory = std::function<std::unique_ptr<Engine>(const World&)>;

class Simulation {
 public:
  // engine: "window" or "event"; threads: of the window engine, whatever their number the results
  // are the same; throws std::invalid_argument
  Simulation(const std::string& compiled, std::uint64_t seed, const std::string& engine,
             std::size_t threads = 1);
  Simulation(const std::string& compiled, std::uint64_t seed, const EngineFactory& make);
  // at time 0, on the network of `other`, which both share, and by an engine of the same kind
  Simulation(const Simulation& other, std::uint64_t seed);

  // a row per host, of the knobs of its scheme, and a curve per port; in force from now on, or
  // dispatch_delay later
  void apply(const SiRows& nics, std::vector<EcnSetting> ecns);
  // run everything that happens before `until`
  void advance(Time until);
  // close the interval that began at the last report
  const IntervalData& report();
  // the interval that the last report closed; a snapshot has no more of it than when it ended
  const IntervalData& closed() const { return data_; }

  // look at a port now, inside an open interval; changes nothing
  PortSample sample_port(int port) const { return engine_->sample_port(port, now_); }

  // the state as bytes, and a fresh simulation of the same scenario, seed and engine in that state:
  // both go on with the same bytes. Throws std::runtime_error if the engine makes no snapshots, and
  // std::invalid_argument if the bytes are of another simulation or version
  std::string snapshot();
  void restore(const std::string& bytes);
  std::unique_ptr<Simulation> clone();

  Time now() const { return now_; }
  Engine& engine() { return *engine_; }
  const Topology& topology() const { return *network_.topology; }
  const Scenario& scenario() const { return *network_.scenario; }
  const Totals& totals() const { return totals_; }
  Monitor& monitor() { return monitor_; }
  const TransportLayer& transport() const { return transport_; }
  NicSchemes& schemes() { return transport_.schemes(); }
  bool done() const { return source_.exhausted() && transport_.live_flows() == 0; }

 private:
  struct Change {
    Time when = 0;
    std::vector<double> rows;  // the NICs' settings in SI values, and as their schemes read them
    NicSettings nics;
    std::vector<EcnSetting> ecns;

    void visit(Archive& a) { a.all<Change>(when, rows, built(nics), ecns); }
  };
  // what never changes: shared by simulations of one scenario
  struct Network {
    std::shared_ptr<const Scenario> scenario;
    std::shared_ptr<const Topology> topology;
    std::uint64_t key = 0;  // of the compiled text

    static Network of(const std::string& compiled);
  };
  Simulation(const Network& network, std::uint64_t seed, const EngineFactory& make);
  NicSettings read(const std::vector<double>& rows) const;
  void put_in_force(const Change& change);
  void visit(Archive& a);

  Network network_;
  std::uint64_t seed_;
  EngineFactory make_;
  FlowSource source_;
  IntervalLog log_;
  TransportLayer transport_;
  Monitor monitor_;
  std::unique_ptr<Engine> engine_;
  std::deque<Change> changes_;
  std::vector<double> in_force_;  // rows of the NICs; empty: none was put in force
  IntervalData data_;
  Totals totals_;
  Time now_ = 0;
};

}  // namespace dcqcn
