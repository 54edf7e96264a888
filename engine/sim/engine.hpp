// What every engine does: move packets and time through the model. The order of what happens at
// one node at one picosecond is part of the contract (docs/reference/model.md): setting change, PFC
// takes effect, timers, dequeues of ports that become free (by port), arrivals (by in-port; a
// packet that finds its egress idle starts at once), flow starts (in the order of the flow source).
#pragma once

#include <stdexcept>
#include <vector>

#include "model/base/metrics.hpp"
#include "model/fabric/topology.hpp"
#include "model/flows/transport.hpp"
#include "model/monitors/monitor.hpp"
#include "model/settings/settings.hpp"
#include "model/text/scenario.hpp"

namespace dcqcn {

// everything that the engines of one simulation share
struct World {
  const Scenario& scenario;
  const Topology& topology;
  FlowSource& source;
  TransportLayer& transport;
  IntervalLog& log;
  Monitor& monitor;
  std::uint64_t seed;
};

// one egress port, as an interval report sees it
struct PortReport {
  PortCounters counters;
  Bytes queue = 0;
  double pause = 0;  // ps, mean over lossless priorities
};

// one egress port at an instant; sent bytes and pause since the interval began
struct PortSample {
  Bytes queue = 0;
  Bytes tx_bytes = 0;  // data
  double pause = 0;    // ps, mean over lossless priorities
  bool paused = false;
};

class Engine {
 public:
  virtual ~Engine() = default;
  // handle everything that happens before `until`
  virtual void run(Time until) = 0;
  // NIC settings have changed: a window may have opened
  virtual void settings_changed(Time now) = 0;
  virtual void set_ecn(const std::vector<EcnSetting>& per_port) = 0;
  // figures of the interval that ends at `now`; counters start again
  virtual void report_ports(Time now, std::vector<PortReport>& out) = 0;
  // what a port looks like at `now`; changes nothing
  virtual PortSample sample_port(int, Time) const {
    throw std::runtime_error("this engine cannot be sampled");
  }
  // model/base/archive.hpp
  virtual void visit(Archive&) { throw std::runtime_error("this engine makes no snapshots"); }
};

}  // namespace dcqcn
