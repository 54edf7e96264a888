// The immutable input of a simulation, read from the compiled scenario (flat text, see
// docs/reference/compiled-scenario.md). One parser serves the native engine and ns-3.
#pragma once

#include <string>
#include <vector>

#include "model/base/units.hpp"
#include "model/fabric/classes.hpp"
#include "model/fabric/next_hops.hpp"
#include "model/fabric/shared_buffer.hpp"
#include "model/jobs/job_graph.hpp"
#include "model/monitors/monitor_config.hpp"
#include "model/schemes/scheme.hpp"

namespace dcqcn {

struct LinkSpec {
  int a = 0;
  int b = 0;
  Time ps_per_byte = 80;
  Time delay = 5 * kPicosPerMicro;
  Bytes headroom = 0;

  bool operator==(const LinkSpec&) const = default;
};

struct SwitchSpec {
  int tier = 0;
  Bytes buffer = 12'582'912;
  std::uint32_t salt = 0;

  bool operator==(const SwitchSpec&) const = default;
};

struct Wire {
  Bytes payload = 1000;
  Bytes data_overhead = 62;
  Bytes ack = 66;
  Bytes cnp = 78;
  Bytes pfc = 64;
  bool cnp_in_ack = false;

  bool operator==(const Wire&) const = default;
};

struct Transport {
  bool qp_per_pair = false;
  std::uint32_t ack_every = 1;
  Bytes window = 0;            // bytes in flight; 0: no window
  bool window_scales = false;  // with rate / line rate
  Time rto = 4'000'000'000;
  bool cnp_scope_port = false;
  Time cnp_port_gap = 0;
  Time cnp_delay = 0;
  Time dispatch_delay = 0;  // from a new setting to its effect
  Time rtt_probe = 0;       // least time between the packets whose round trip counts; 0: all
  Time message_cost = 0;    // from posting a message at an idle queue pair to its first packet
  bool loss_cuts = false;   // a NACK and a timeout act on a sender's scheme as a CNP does

  bool operator==(const Transport&) const = default;
};

struct CdfPoint {
  double bytes = 0;
  double probability = 0;

  bool operator==(const CdfPoint&) const = default;
};
using Cdf = std::vector<CdfPoint>;

// of a switch: the window engine numbers them with 12 bits
inline constexpr int kMostPorts = 4096;

// the size of a flow that never ends
inline constexpr Bytes kUnlimited = Bytes{1} << 60;

struct Transfer {
  int src = 0;
  int dst = 0;
  Bytes bytes = 0;
  Time start = 0;

  bool operator==(const Transfer&) const = default;
};

enum class Pattern : std::uint8_t {
  kPoisson,
  kAllToAll,
  kIncast,
  kPermutation,
  kPairs,
  kFlows,
  kRing,
  kStreams,
  kStorage,
  kParameterServer,
  kJob,
};

// does what arrives at a host make it send? Then connections are the workload's own.
constexpr bool reacts(Pattern p) {
  return p == Pattern::kRing || p == Pattern::kStorage || p == Pattern::kParameterServer ||
         p == Pattern::kJob;
}
// so many workloads at most, if one of them does
inline constexpr std::size_t kMostReacting = 4096;

struct WorkloadSpec {
  Pattern pattern = Pattern::kPoisson;
  int cdf = 0;
  std::vector<int> hosts;
  std::vector<int> dsts;
  double mean_gap = 0;  // ps
  Time start = 0;
  Time stop = kNever;
  Time repeat = 0;
  Bytes bytes = 0;
  std::int64_t flows = 0;  // streams: how many
  Time within = 0;         // streams: from the first possible start to the last
  Time off = 0;
  std::int64_t rounds = 0;  // 0: unbounded; storage: IOs of a host
  int steps = 0;            // ring: transfers per host and round
  int depth = 1;            // storage: IOs of a host at a time
  int copies = 0;           // storage: nodes that a block is copied to
  double read_share = 0;    // storage: of the IOs
  Bytes block_min = 0;      // storage: blocks are multiples of it
  Bytes block_max = 0;
  int messages = 1;
  int connections = 1;  // of each pair of hosts, used in turn
  unsigned priority = 3;
  std::vector<Transfer> transfers;  // pairs and flows
  JobGraph job;                     // shared by all that run it; until it is whole, as given:
  std::string graph;                // bytes of JobGraph::read, else lines
  std::vector<JobLine> nodes;
  int qps = 1;         // job: queue pairs of a connection
  bool split = false;  // job: over all of them, else in turn
  int admission = 0;   // job: transfers that a receiver lets in at a time; 0: all

  bool operator==(const WorkloadSpec&) const = default;
};

// hosts 0 to gpus - 1 are a server, and so on; a link of each leads to the others
struct Servers {
  int gpus = 0;  // 0: no servers
  Rate rate = 0;
  Time delay = 0;

  bool same(int a, int b) const { return gpus > 0 && a / gpus == b / gpus; }
  bool operator==(const Servers&) const = default;
};

struct Scenario {
  int hosts = 0;
  std::vector<SwitchSpec> switches;  // node number - hosts
  std::vector<LinkSpec> links;
  std::vector<NextHopRow> next_hops;
  Servers servers;
  Wire wire;
  PfcConfig pfc;
  Classes classes;
  Transport transport;
  std::vector<SchemeSpec> schemes;  // none: dcqcn everywhere
  MonitorConfig monitor;
  std::vector<Cdf> cdfs;
  std::vector<WorkloadSpec> workloads;

  int nodes() const { return hosts + static_cast<int>(switches.size()); }
  // bytes that a switch may have to keep for a lossless priority of a link, see scenario.cpp
  Bytes headroom_needed(const LinkSpec& link) const;
  // the first link whose switch has less; nullptr: none, or no PFC
  const LinkSpec* short_of_headroom() const;
  // can a packet of the priority be dropped?
  bool can_lose(unsigned priority) const;

  bool operator==(const Scenario&) const = default;

  // throws std::invalid_argument with line number, what was found and what was expected
  static Scenario parse(const std::string& text);
};

}  // namespace dcqcn
