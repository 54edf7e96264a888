#include "random_options.hpp"

#include <set>
#include <stdexcept>
#include <string>

#include "model/random_stream.hpp"
#include "model/topology.hpp"

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

// rows along paths of other hashes: for early flows, of which some exist
void list_next_hops(Job& job, RandomStream& draws) {
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
    for (const int p : topology.path(src, dst, bits)) {
      const PortSpec& port = topology.port(p);
      if (port.node < scenario.hosts || draws.below(3) == 0) continue;
      rows.push_back("next_hop " + std::to_string(port.node) + " " + flow + " " +
                     std::to_string(port.index));
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
  job.scenario.insert(job.scenario.end() - 1,
                      "workload streams hosts=" + hosts_from(0, split) +
                          " dsts=" + hosts_from(split, scenario.hosts) + " bytes=" + bytes +
                          " flows=" + std::to_string(1 + draws.below(30)) +
                          " start_ps=" + std::to_string(draws.below(50'000'000)) +
                          " within_ps=" + std::to_string(draws.below(200'000'000)) +
                          " priority=" + (draws.below(6) == 0 ? "4" : "3"));
}

}  // namespace

void add_traffic(Job& job, std::uint64_t seed, std::uint64_t number) {
  RandomStream draws(seed, Purpose::kRounds, number);
  const bool streams = draws.below(3) == 0;
  if (streams && accepted(job)) add_streams(job, draws);
}

void add_options(Job& job, std::uint64_t seed, std::uint64_t number) {
  RandomStream draws(seed, Purpose::kArrivals, number);
  const bool acks = draws.below(2) == 0;
  const bool hops = draws.below(3) == 0;
  if (!accepted(job)) return;
  if (acks) put_acks_into_the_data_class(job);
  if (hops) list_next_hops(job, draws);
}

}  // namespace dcqcn::fuzz
