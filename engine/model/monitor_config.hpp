// Which monitor a scenario has and how it is set up: the monitor line of a compiled scenario.
#pragma once

#include <cstdint>

#include "model/compiled_line.hpp"
#include "model/flow_states.hpp"
#include "model/units.hpp"

namespace dcqcn {

enum class MonitorKind : std::uint8_t {
  kNone,          // no distribution
  kExact,         // exact counters, ternary states
  kElastic,       // Elastic Sketch, ternary states (PARALEON)
  kElasticNaive,  // Elastic Sketch, each interval judged alone
  kNetflow,       // sampled packets, exported now and then
  kChameleon,     // Elastic Sketch, local statistics of 10 ms, uploaded every 100 ms
};

struct MonitorConfig {
  MonitorKind kind = MonitorKind::kExact;
  FlowStateConfig states;  // tau, delta, weight of potential elephants, bound on the history
  double theta = 0.01;     // KL divergence above which a change triggers
  std::int64_t heavy_bytes = 153'600;
  std::int64_t light_bytes = 460'800;
  bool count_packets = false;  // sketches count packets of `packet_bytes`, not bytes
  std::int64_t packet_bytes = 1000;
  std::uint32_t sample_one_in = 100;    // netflow: mean packets per sample
  Time export_every = kPicosPerSecond;  // netflow
  Time local_every = kPicosPerSecond / 100;
  Time upload_every = kPicosPerSecond / 10;
  bool labels = false;  // keep the truth beside the monitor and list every flow
  bool trace = false;   // keep every recorded packet until it is taken
  int sizes_cdf = -1;   // number of the cdf that becomes states.sizes; -1: none

  bool operator==(const MonitorConfig&) const = default;

  /// Throws std::invalid_argument with the number of the line, what was given and what was
  /// expected.
  static MonitorConfig read(const Line& line);
};

}  // namespace dcqcn
