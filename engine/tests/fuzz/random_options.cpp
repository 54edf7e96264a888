#include "random_options.hpp"

#include <set>
#include <sstream>
#include <stdexcept>
#include <string>

#include "model/base/random_stream.hpp"
#include "model/fabric/shared_buffer.hpp"
#include "model/fabric/topology.hpp"

namespace dcqcn::fuzz {
namespace {

bool accepted(const Job& job) {
  try {
    Simulation(job.compiled(), 1, "window");
  } catch (const std::invalid_argument&) {
    return false;
  }
  return true;
}

void put_acks_into_the_data_class(Job& job) {
  Job changed = job;
  for (std::string& line : changed.scenario) {
    if (line.rfind("pfc ", 0) == 0) line += " ack_class=data";
  }
  if (accepted(changed)) job = changed;  // not where packets can be lost
}

// rows along paths of other hashes: for the data of early flows, of which some exist, or for ACKs
void list_next_hops(Job& job, RandomStream& draws, bool acks) {
  const Scenario scenario = Scenario::parse(job.compiled());
  const Topology topology(scenario);
  const auto hosts = static_cast<std::uint32_t>(scenario.hosts);
  std::set<std::string> flows;
  std::vector<std::string> rows;
  for (std::uint32_t i = 0, n = 1 + draws.below(12); i < n; ++i) {
    const int src = static_cast<int>(draws.below(hosts));
    const int dst = (src + 1 + static_cast<int>(draws.below(hosts - 1))) % scenario.hosts;
    const std::string flow =
        std::to_string(src) + " " + std::to_string(dst) + " " + std::to_string(draws.below(4));
    const auto bits = static_cast<std::uint16_t>(draws.below(65536));
    if (!flows.insert(flow).second) continue;
    for (const int p : (acks ? topology.path(dst, src, bits) : topology.path(src, dst, bits))) {
      const PortSpec& port = topology.port(p);
      if (port.node < scenario.hosts || draws.below(3) == 0) continue;
      rows.push_back("next_hop " + std::to_string(port.node) + " " + flow + " " +
                     std::to_string(port.index) + (acks ? " packets=acks" : ""));
    }
  }
  job.scenario.insert(job.scenario.end() - 1, rows.begin(), rows.end());  // before `end`
}

std::string hosts_from(int first, int last) {
  std::string s = std::to_string(first);
  for (int h = first + 1; h < last; ++h) s += "," + std::to_string(h);
  return s;
}

// flows that start at random, half of them without an end, from the first hosts to the others
void add_streams(Job& job, RandomStream& draws) {
  const Scenario scenario = Scenario::parse(job.compiled());
  const int split =
      1 + static_cast<int>(draws.below(static_cast<std::uint32_t>(scenario.hosts) - 1));
  const std::string bytes =
      draws.below(2) == 0 ? "unlimited" : std::to_string(1 + draws.below(300'000));
  const std::string row = "workload streams hosts=" + hosts_from(0, split) +
                          " dsts=" + hosts_from(split, scenario.hosts) + " bytes=" + bytes +
                          " flows=" + std::to_string(1 + draws.below(30)) +
                          " start_ps=" + std::to_string(draws.below(50'000'000)) +
                          " within_ps=" + std::to_string(draws.below(200'000'000)) + " priority=";
  Job changed = job;
  changed.scenario.insert(changed.scenario.end() - 1, row + (draws.below(6) == 0 ? "4" : "3"));
  if (!accepted(changed)) *(changed.scenario.end() - 2) = row + "3";  // ACKs that could be lost
  job = changed;
}

// several connections for every workload that can have them, on kept queue pairs or not
void add_connections(Job& job, RandomStream& draws) {
  for (std::string& line : job.scenario) {
    const bool has = line.rfind("workload ", 0) == 0 && line.rfind("workload flows", 0) != 0 &&
                     line.rfind("workload ring", 0) != 0 && line.rfind("workload streams", 0) != 0;
    if (has) line += " connections=" + std::to_string(1 + draws.below(6));
  }
}

// a storage fabric or a parameter server among all hosts, beside the other traffic
void react_to_arrivals(Job& job, RandomStream& draws) {
  const Scenario scenario = Scenario::parse(job.compiled());
  const int hosts = scenario.hosts;
  const auto below = [&](std::uint32_t n) { return std::to_string(draws.below(n)); };
  std::string line = " start_ps=" + below(50'000'000) + " rounds=" + below(40) +
                     " stop_ps=" + std::to_string(100'000'000 + draws.below(900'000'000)) +
                     " priority=" + std::to_string(scenario.workloads.front().priority);
  if (draws.below(3) == 0) {
    line = "workload parameter-server hosts=" + hosts_from(1, hosts) +
           " dst=0 bytes=" + std::to_string(1 + draws.below(200'000)) +
           " off_ps=" + below(30'000'000) + line;
  } else {
    const int nodes = 1 + static_cast<int>(draws.below(static_cast<std::uint32_t>(hosts - 1)));
    const std::uint32_t least = 1 + draws.below(9'000);
    line = "workload storage hosts=" + hosts_from(nodes, hosts) + " dsts=" + hosts_from(0, nodes) +
           " depth=" + std::to_string(draws.below(2) ? 1 + draws.below(4) : 1 + draws.below(128)) +
           " copies=" + below(static_cast<std::uint32_t>(nodes)) + " read_share=0." + below(10) +
           " block_min=" + std::to_string(least) +
           " block_max=" + std::to_string(least * (1 + draws.below(40))) +
           " bytes=" + std::to_string(1 + draws.below(300)) + line;
  }
  job.scenario.insert(job.scenario.end() - 1, line);  // before `end`
}

// reserves and headrooms: a switch with no more than that has nothing to share
Bytes kept_bytes(const Simulation& simulation, int node) {
  const Topology& t = simulation.topology();
  std::vector<Bytes> headrooms;
  for (int p = t.first_port(node); p < t.first_port(node + 1); ++p) {
    headrooms.push_back(t.port(p).headroom);
  }
  return -SharedBuffer(simulation.scenario().pfc, 0, headrooms).pool();
}

// what is left to share is below the size of most packets, or nothing
void take_the_shared_buffer(Job& job, RandomStream& draws) {
  const Simulation plain(job.compiled(), 1, "window");
  Job changed = job;
  for (std::string& line : changed.scenario) {
    if (line.rfind("switch ", 0) != 0) continue;
    std::istringstream in(line);
    std::string word, out;
    int node = 0;
    in >> word >> node;
    const Bytes shared = draws.below(2) == 0 ? 0 : draws.below(2000);
    out = word + " " + std::to_string(node);
    while (in >> word) {
      const bool buffer = word.rfind("buffer=", 0) == 0;
      out += " " + (buffer ? "buffer=" + std::to_string(kept_bytes(plain, node) + shared) : word);
    }
    line = out;
  }
  if (accepted(changed)) job = changed;
}

// before every second `apply`, all ports have one alpha and one of them another
void move_alphas(Job& job, RandomStream& draws) {
  const Simulation plain(job.compiled(), 1, "window");
  const auto ports = static_cast<std::uint32_t>(plain.topology().port_count());
  const auto alpha = [&draws] { return std::to_string(0.001 + 4 * draws.uniform()); };
  std::vector<std::string> script;
  for (const std::string& line : job.script) {
    if (line == "apply" && draws.below(2) == 0) {
      script.push_back("alpha * " + alpha());
      script.push_back("alpha " + std::to_string(draws.below(ports)) + " " + alpha());
    }
    script.push_back(line);
  }
  job.script = script;
}

}  // namespace

void add_traffic(Job& job, std::uint64_t seed, std::uint64_t number) {
  RandomStream draws(seed, Purpose::kRounds, number);
  const bool streams = draws.below(3) == 0;
  const bool connections = draws.below(3) == 0;
  const bool reacting = draws.below(3) == 0;
  if (!accepted(job)) return;
  if (streams) add_streams(job, draws);
  if (connections) add_connections(job, draws);
  if (reacting) react_to_arrivals(job, draws);
}

void add_classes(Job& job, std::uint64_t seed, std::uint64_t number) {
  RandomStream draws(seed, Purpose::kRounds, ~number);
  const auto below = [&](std::uint32_t n) { return std::to_string(draws.below(n)); };
  if (draws.below(2) == 0) return;
  if (!accepted(job)) return;
  Job changed = job;
  const std::uint32_t tcp = draws.below(4);  // a bit for each of the priorities 0 and 1
  for (std::string& line : changed.scenario) {
    const std::size_t at = line.find(" priority=");
    if (line.rfind("pfc ", 0) == 0 && draws.below(4) == 0) line += " ack_class=data-cnp-first";
    if (line.rfind("workload ", 0) != 0 || at == std::string::npos) continue;
    const std::uint32_t which = draws.below(5);
    if (which < 4) line[at + 10] = "0135"[which];
  }
  for (unsigned p = 0; p < 8; ++p) {
    std::string row = "class " + std::to_string(p) +
                      " weight=" + std::to_string(1 + draws.below(draws.below(2) ? 4 : 100));
    const bool is_tcp = tcp >> p & 1;
    if (is_tcp) row += " transport=tcp";
    if (draws.below(3) == 0) row += " alpha=" + std::to_string(0.01 + 4 * draws.uniform());
    if (!is_tcp && draws.below(3) == 0) {
      const std::uint32_t kmin = draws.below(100'000);
      row += " ecn=" + std::to_string(kmin) + ":" + std::to_string(kmin + draws.below(100'000)) +
             ":0." + below(10);
    }
    if (is_tcp || draws.below(2) == 0) changed.scenario.insert(changed.scenario.end() - 1, row);
  }
  if (accepted(changed)) job = changed;
}

void add_probes(Job& job, std::uint64_t seed, std::uint64_t number) {
  RandomStream draws(seed, Purpose::kMonitor, number);
  if (draws.below(3) != 0) return;
  const std::string period = std::to_string(1 + draws.below(200'000'000));
  for (std::string& line : job.scenario) {
    if (line.rfind("transport ", 0) == 0) line += " rtt_probe_ps=" + period;
  }
}

void add_card(Job& job, std::uint64_t seed, std::uint64_t number) {
  RandomStream draws(seed, Purpose::kRounds, ~number);
  if (draws.below(4) != 0) return;
  const std::string cost = std::to_string(draws.below(6'000'000));
  for (std::string& line : job.scenario) {
    if (line.rfind("transport ", 0) == 0) line += " message_ps=" + cost + " loss=cut";
  }
}

void change_buffers(Job& job, std::uint64_t seed, std::uint64_t number) {
  RandomStream draws(seed, Purpose::kMarking, number);
  const bool pools = draws.below(6) == 0;
  const bool alphas = draws.below(3) == 0;
  if (!accepted(job)) return;
  if (pools) take_the_shared_buffer(job, draws);
  if (alphas) move_alphas(job, draws);
}

void add_options(Job& job, std::uint64_t seed, std::uint64_t number) {
  RandomStream draws(seed, Purpose::kArrivals, number);
  const bool acks = draws.below(2) == 0;
  const bool hops = draws.below(3) == 0;
  if (!accepted(job)) return;
  if (acks) put_acks_into_the_data_class(job);
  if (hops) list_next_hops(job, draws, false);
  if (draws.below(6) == 0) list_next_hops(job, draws, true);
}

}  // namespace dcqcn::fuzz
