// The control plane of one ToR: a history of its flows, and from it the ternary states of PARALEON
// (ICNP 2024, section III-B, keypoint 2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/base/archive.hpp"
#include "model/base/units.hpp"

namespace dcqcn {

enum class FlowState : std::uint8_t { kUnseen = 0, kMouse = 1, kPotential = 2, kElephant = 3 };

/// How much of an elephant a potential elephant counts as; the rest of it counts as a mouse.
enum class PeWeight : std::uint8_t {
  kRatio,     // bytes so far / tau
  kLogistic,  // 1 / (1 + e^(-age / 1 ms)), age since it became potential (the authors' ns-3 code)
  kSurvival,  // P(size >= tau | size > bytes so far) under a known size distribution
};

struct SizePoint {
  double bytes = 0;
  double probability = 0;

  bool operator==(const SizePoint&) const = default;
};

struct FlowStateConfig {
  std::int64_t tau = 1'000'000;  // bytes that make an elephant
  std::uint32_t delta = 3;       // intervals of activity that make a potential elephant
  PeWeight weight = PeWeight::kRatio;
  std::vector<SizePoint> sizes;     // for kSurvival: points of the cumulative distribution
  std::size_t max_flows = 1 << 16;  // bound on the history

  void visit(Archive& a) { a.all<FlowStateConfig>(tau, delta, weight, sizes, max_flows); }

  bool operator==(const FlowStateConfig&) const = default;
};

/// P(size >= tau | size > phi) for a piecewise linear distribution; phi / tau where it says
/// nothing.
double survival_weight(const std::vector<SizePoint>& sizes, std::int64_t tau, std::uint64_t phi);

class FlowStates {
 public:
  struct Observed {
    FlowState state = FlowState::kUnseen;
    std::uint64_t phi = 0;        // bytes since the flow was first seen
    double elephant_share = 0.0;  // in 0..1
  };

  FlowStates() = default;
  explicit FlowStates(const FlowStateConfig& config) : config_(config) {}

  /// A flow that sent `bytes` > 0 in the interval that ends at `now`; once per flow and interval.
  /// A flow that finds the history full is judged by this interval alone.
  Observed observe(std::uint32_t key, std::uint64_t bytes, Time now);

  /// Ends the interval and forgets the flows that were idle in the last delta of them.
  void end_interval();

  std::size_t tracked() const { return flows_.size(); }
  std::size_t peak_tracked() const { return peak_; }
  /// Flows that found the history full, in all.
  std::uint64_t untracked() const { return untracked_; }
  /// The table a switch would have needed so far.
  std::size_t peak_bytes() const { return peak_ * (sizeof(Flow) + 2 * sizeof(std::uint32_t)); }

  void visit(Archive& a) {
    a.all<FlowStates>(config_, flows_, index_, interval_, peak_, untracked_);
  }

 private:
  struct Flow {
    std::uint64_t phi = 0;
    Time potential_since = 0;
    std::uint32_t key = 0;
    std::uint32_t active = 0;  // intervals with data since first seen
    std::uint32_t last = 0;    // number of the last of them
    std::uint32_t unused = 0;
  };

  Flow* find_or_add(std::uint32_t key);
  void reindex(std::size_t slots);
  double weight(const Flow& flow, Time now) const;

  FlowStateConfig config_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> index_;  // open addressing: position in flows_ + 1, or 0
  std::uint32_t interval_ = 0;
  std::size_t peak_ = 0;
  std::uint64_t untracked_ = 0;
};

}  // namespace dcqcn
