// Flow-size distributions: the vector one ToR sends per interval, their sum over the network, and
// the Kullback-Leibler trigger at the controller (PARALEON, ICNP 2024, section III).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "model/base/units.hpp"
#include "model/monitors/flow_states.hpp"

namespace dcqcn {

inline constexpr std::size_t kFsdBins = 16;

/// Bin of a flow by bytes so far: 0 below 2 KiB, then one per doubling, 15 from 32 MiB on.
constexpr std::size_t fsd_bin(std::uint64_t bytes) {
  std::size_t bin = 0;
  for (bytes >>= 11; bytes != 0 && bin + 1 < kFsdBins; bytes >>= 1) ++bin;
  return bin;
}

/// What travels from one ToR to the controller; counts of active flows. Shares are summed as
/// integers, so the order in which flows are read does not matter.
struct LocalFsd {
  std::uint64_t weighted_elephants = 0;  // in units of 2^-32 flows
  std::uint32_t node = 0;
  std::uint32_t periods = 1;  // local periods that the counts are summed over
  std::uint32_t elephants = 0;
  std::uint32_t potential = 0;
  std::uint32_t mice = 0;
  std::uint32_t untracked = 0;
  std::array<std::uint32_t, kFsdBins> bins{};

  void add(FlowState state, std::uint64_t bytes_so_far, double elephant_share);
};
static_assert(sizeof(LocalFsd) == 96, "the size on the wire");

/// The distribution of one interval, as dcqcn_gym.core.interval.FlowSizeDistribution documents it.
struct FsdReport {
  double elephants = 0.0;
  double potential = 0.0;
  double mice = 0.0;
  double weighted_elephants = 0.0;
  double weighted_mice = 0.0;
  std::array<double, kFsdBins> bins{};
  double kl = 0.0;
  bool triggered = false;
  bool known = true;
  std::int64_t monitor_bytes = 0;
  // cost and health of the monitor, over all ToRs
  std::int64_t data_plane_bytes = 0;     // memory of the counters or sketches
  std::int64_t control_plane_bytes = 0;  // most memory that the flow histories needed so far
  std::int64_t tracked_flows = 0;        // flows in the histories now
  std::int64_t untracked_flows = 0;      // flows that found a history full, in all

  void add(const LocalFsd& local);
  double flows() const { return elephants + potential + mice; }
};

/// Divergence (nats) of {elephants, mice} now from before, 0.5 added to every count.
double kl_divergence(double elephants, double mice, double before_elephants, double before_mice);

/// Compares successive distributions. An interval without flows is skipped: it neither triggers
/// nor becomes the distribution that the next one is compared with. The first one triggers.
class KlTrigger {
 public:
  explicit KlTrigger(double theta = 0.01) : theta_(theta) {}
  void update(FsdReport& report);

 private:
  double theta_;
  bool started_ = false;
  double elephants_ = 0.0;
  double mice_ = 0.0;
};

/// Bytes of a NetFlow version 5 export of `flows` records: 48 each, 30 to a packet of header 24.
constexpr std::int64_t netflow_export_bytes(std::int64_t flows) {
  return 48 * flows + 24 * ((flows + 29) / 30);
}

}  // namespace dcqcn
