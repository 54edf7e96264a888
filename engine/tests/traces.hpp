// Packet streams with the statistics of the published Elastic Sketch experiments, and exact counts.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "model/base/det_math.hpp"
#include "model/base/random_stream.hpp"

namespace dcqcn::traces {

struct Packet {
  std::uint32_t key = 0;
  std::uint32_t bytes = 0;
};

struct Trace {
  std::vector<Packet> packets;
  std::unordered_map<std::uint32_t, std::uint64_t> packets_of;
  std::unordered_map<std::uint32_t, std::uint64_t> bytes_of;
  std::unordered_map<std::uint32_t, std::uint64_t> final_size;  // of the flow, sent in full or not
  std::vector<std::size_t> interval_ends;  // numbers of packets, where a stream has a clock

  void add(std::uint32_t key, std::uint32_t bytes) {
    packets.push_back({key, bytes});
    ++packets_of[key];
    bytes_of[key] += bytes;
  }
};

// keys without structure, as addresses are; never 0
inline std::uint32_t key_of(std::uint32_t i) { return mix32(i + 0x9E3779B9u) | (i == 0); }

/// Independent draws from a Zipf law of exponent 1 over `flows` keys: 1.5 M draws over 100,000
/// touch about 89.6 K.
inline Trace zipf(std::size_t packets, std::uint32_t flows, std::uint64_t seed) {
  std::vector<double> cumulative(flows);
  double sum = 0;
  for (std::uint32_t i = 0; i < flows; ++i) cumulative[i] = sum += 1.0 / (i + 1);
  RandomStream random(seed, Purpose::kArrivals, 1);
  Trace trace;
  trace.packets.reserve(packets);
  for (std::size_t n = 0; n < packets; ++n) {
    const double u = random.uniform() * sum;
    const auto at = std::upper_bound(cumulative.begin(), cumulative.end(), u);
    trace.add(key_of(static_cast<std::uint32_t>(at - cumulative.begin())), 1000);
  }
  return trace;
}

/// A flow size of the FB_Hadoop distribution (Roy et al., SIGCOMM 2015, as published with HPCC).
inline std::uint32_t fb_hadoop_size(double u) {
  static constexpr double kPoints[][2] = {{0, 0},        {100, .01},   {200, .02},   {300, .05},
                                          {350, .15},    {400, .2},    {500, .3},    {600, .4},
                                          {700, .5},     {1000, .6},   {2000, .67},  {7000, .7},
                                          {30000, .72},  {50000, .82}, {80000, .87}, {120000, .9},
                                          {300000, .95}, {1e6, .975},  {2e6, .99},   {1e7, 1}};
  int i = 1;
  while (u > kPoints[i][1]) ++i;
  const double* a = kPoints[i - 1];
  const double* b = kPoints[i];
  const double size = a[0] + (b[0] - a[0]) * (u - a[1]) / (b[1] - a[1]);
  return size < 1 ? 1 : static_cast<std::uint32_t>(size);
}

/// Poisson flows of 120.4 KB from `hosts` hosts of 10 Gb/s at `load`; every host sends a packet of
/// 1000 B per 0.8 us slot, its flows in turn, and a rack of 16 gets `uplink` packets per slot out.
inline Trace fb_hadoop(int hosts, double load, double milliseconds, double uplink,
                       std::uint64_t seed) {
  struct Flow {
    std::uint32_t key = 0;
    std::uint32_t left = 0;
  };
  constexpr double kSlot = 0.8;               // us
  constexpr std::int64_t kInterval = 12'500;  // 10 ms here are 1 ms at 100 Gb/s
  const double gap = 120'400 * kSlot / 1000 / load;
  std::vector<std::vector<Flow>> active(static_cast<std::size_t>(hosts));
  std::vector<RandomStream> random;
  std::vector<double> next;
  for (int h = 0; h < hosts; ++h) {
    random.emplace_back(seed, Purpose::kArrivals, static_cast<std::uint64_t>(h) + 2);
    next.push_back(-gap * det_log(1.0 - random.back().uniform()));
  }
  Trace trace;
  std::uint32_t flows = 0;
  std::vector<double> tokens(static_cast<std::size_t>(hosts / 16 + 1), 0.0);
  const auto slots = static_cast<std::int64_t>(milliseconds * 1000 / kSlot);
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    if (slot > 0 && slot % kInterval == 0) trace.interval_ends.push_back(trace.packets.size());
    for (double& t : tokens) t = std::min(t + uplink, 16.0);
    for (int n = 0; n < hosts; ++n) {
      const int h = static_cast<int>((n + slot) % hosts);
      const auto at = static_cast<std::size_t>(h);
      while (next[at] <= static_cast<double>(slot) * kSlot) {
        active[at].push_back({key_of(flows++), fb_hadoop_size(random[at].uniform())});
        trace.final_size[active[at].back().key] = active[at].back().left;
        next[at] -= gap * det_log(1.0 - random[at].uniform());
      }
      double& token = tokens[static_cast<std::size_t>(h / 16)];
      if (active[at].empty() || token < 1.0) continue;
      token -= 1.0;
      Flow flow = active[at].front();
      active[at].erase(active[at].begin());
      const std::uint32_t bytes = std::min(flow.left, 1000u);
      trace.add(flow.key, bytes);
      flow.left -= bytes;
      if (flow.left > 0) active[at].push_back(flow);
    }
  }
  return trace;
}

}  // namespace dcqcn::traces
