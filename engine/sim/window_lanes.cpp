// The window engine in several threads: the nodes of one colour run at once. No two of them have a
// link in common, so that no ring, no buffer and no queue pair's end is ever touched by two threads
// at once. What is shared by all (the start and the end of a flow) is left to one thread, in the
// order in which it would do it alone.
#include <algorithm>
#include <stdexcept>

#include "sim/window_engine.hpp"

namespace dcqcn {

namespace {

constexpr std::size_t kMostThreads = 64;

}  // namespace

void WindowEngine::make_lanes(std::size_t threads) {
  if (threads < 1 || threads > kMostThreads) {
    throw std::invalid_argument("threads = " + std::to_string(threads) + "; expected 1 to " +
                                std::to_string(kMostThreads));
  }
  const std::vector<int> colours = colours_of_switches();
  const bool coloured = !colours.empty() && world_.monitor.tors_apart();
  if (coloured) lead_ = window_;
  if (!coloured) threads = 1;
  for (std::uint32_t s = 0; s < switches_.size(); ++s) {
    switches_of_[coloured ? colours[s] : 1].push_back(s);
  }
  lanes_ = std::vector<Lane>(threads);
  std::uint32_t widest = 0;
  for (const Switch& sw : switches_) widest = std::max(widest, sw.degree);
  for (Lane& lane : lanes_) {
    lane.by_egress.resize(widest);
    lane.seen.resize(widest);
    lane.used.resize(std::size_t{widest} * kPriorities);
    lane.taken.resize(widest);
  }
  if (threads == 1) return;
  share_out(threads, colours);
  crew_ = std::make_unique<Crew>(threads);
}

// By the number of links to the nearest switch with hosts: 0 if it is odd, 1 if it is even. Empty
// where that does not separate all neighbours, or where two hosts share a link.
std::vector<int> WindowEngine::colours_of_switches() const {
  const Topology& t = world_.topology;
  const int hosts = t.hosts();
  std::vector<int> distance(switches_.size(), -1);
  std::vector<std::size_t> next;
  for (int h = 0; h < hosts; ++h) {
    const int near = t.peer_node(t.first_port(h));
    if (near < hosts) return {};
    int& d = distance[static_cast<std::size_t>(near - hosts)];
    if (d < 0) next.push_back(static_cast<std::size_t>(near - hosts));
    d = 0;
  }
  for (std::size_t i = 0; i < next.size(); ++i) {
    const int node = hosts + static_cast<int>(next[i]);
    for (int p = t.first_port(node); p < t.first_port(node + 1); ++p) {
      if (t.peer_node(p) < hosts) continue;
      const std::size_t peer = static_cast<std::size_t>(t.peer_node(p) - hosts);
      if (distance[peer] < 0) {
        distance[peer] = distance[next[i]] + 1;
        next.push_back(peer);
      } else if ((distance[peer] - distance[next[i]]) % 2 == 0) {
        return {};
      }
    }
  }
  for (int& d : distance) d = (d + 1) % 2;
  return distance;
}

// to every lane neighbouring switches with the same number of ports, and hosts with their switch
void WindowEngine::share_out(std::size_t lanes, const std::vector<int>& colours) {
  std::size_t ports[2] = {}, given[2] = {};
  for (std::size_t s = 0; s < switches_.size(); ++s) ports[colours[s]] += switches_[s].degree;
  std::vector<std::uint8_t> lane_of_switch(switches_.size());
  for (std::size_t s = 0; s < switches_.size(); ++s) {
    const int c = colours[s];
    const std::size_t lane = given[c] * lanes / std::max<std::size_t>(1, ports[c]);
    given[c] += switches_[s].degree;
    lane_of_switch[s] = static_cast<std::uint8_t>(lane);
    lanes_[lane].switches[c].push_back(static_cast<std::uint32_t>(s));
  }
  std::vector<std::uint8_t> lane_of_host;
  for (std::uint32_t h = 0; h < nics_.size(); ++h) {
    lane_of_host.push_back(lane_of_switch[nics_[h].port->peer_node - nics_.size()]);
    lanes_[lane_of_host.back()].hosts.push_back(h);
  }
  world_.transport.use_lanes(std::move(lane_of_host), lanes);
}

bool WindowEngine::worth_sharing(Time end) const {
  const auto awake = std::count_if(wakes_.begin(), wakes_.end(), [&](Time t) { return t < end; });
  return static_cast<std::size_t>(awake) >= least_awake_;
}

void WindowEngine::run_colour_shared(int colour, Time begin, Time end) {
  // hosts together with the switches of their colour, where they may
  const bool hosts = colour == 0 && world_.transport.hosts_apart() && !world_.source.jobs().any();
  for (Time from = begin, next; from < end; from = next) {
    next = hosts ? std::min(from + host_window_, end) : end;
    if (hosts) hand_out_flows(next);
    crew_->run([&](std::size_t i) {
      Lane& lane = lanes_[i];
      if (from == begin) {
        for (const std::uint32_t s : lane.switches[colour]) run_switch(lane, s, begin, end);
      }
      if (!hosts) return;
      for (const std::uint32_t h : lane.hosts) {
        if (wakes_[h] < next) run_host<false, true>(lane, h, from, next);
      }
    });
    finish_stops(next);
  }
  if (colour == 0 && !hosts) run_hosts(begin, end);
}

// what hosts have left to one thread
void WindowEngine::finish_stops(Time end) {
  std::vector<Stop>& stops = lanes_[0].stops;
  for (std::size_t i = 1; i < lanes_.size(); ++i) {
    stops.insert(stops.end(), lanes_[i].stops.begin(), lanes_[i].stops.end());
    lanes_[i].stops.clear();
  }
  std::sort(stops.begin(), stops.end(),
            [](const Stop& a, const Stop& b) { return a.host < b.host; });
  for (const Stop& stop : stops) run_host(lanes_[0], stop.host, stop.since, end);
  stops.clear();
}

}  // namespace dcqcn
