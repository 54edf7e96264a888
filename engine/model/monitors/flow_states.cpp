#include "model/monitors/flow_states.hpp"

#include "model/base/det_math.hpp"
#include "model/base/random_stream.hpp"

namespace dcqcn {

namespace {

double ratio_weight(std::int64_t tau, std::uint64_t phi) {
  const double ratio = static_cast<double>(phi) / static_cast<double>(tau);
  return ratio < 1.0 ? ratio : 1.0;
}

// P(size <= x), or P(size < x) when `below`: the two differ where the distribution steps
double cumulative(const std::vector<SizePoint>& sizes, double x, bool below) {
  double at = 0.0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const SizePoint& p = sizes[i];
    if (p.bytes < x || (!below && p.bytes == x)) {
      at = p.probability;
      continue;
    }
    if (i == 0) return p.bytes == x && !below ? p.probability : 0.0;
    const SizePoint& q = sizes[i - 1];
    return q.probability + (p.probability - q.probability) * (x - q.bytes) / (p.bytes - q.bytes);
  }
  return at;
}

}  // namespace

double survival_weight(const std::vector<SizePoint>& sizes, std::int64_t tau, std::uint64_t phi) {
  const double longer = 1.0 - cumulative(sizes, static_cast<double>(phi), false);
  if (sizes.empty() || !(longer > 0.0)) return ratio_weight(tau, phi);
  const double elephants = 1.0 - cumulative(sizes, static_cast<double>(tau), true);
  const double share = elephants / longer;
  return share < 1.0 ? share : 1.0;
}

double FlowStates::weight(const Flow& flow, Time now) const {
  switch (config_.weight) {
    case PeWeight::kLogistic:
      return 1.0 / (1.0 + det_exp(-static_cast<double>(now - flow.potential_since) * 1e-9));
    case PeWeight::kSurvival:
      return survival_weight(config_.sizes, config_.tau, flow.phi);
    case PeWeight::kRatio:
      break;
  }
  return ratio_weight(config_.tau, flow.phi);
}

FlowStates::Observed FlowStates::observe(std::uint32_t key, std::uint64_t bytes, Time now) {
  const auto tau = static_cast<std::uint64_t>(config_.tau);
  Flow* flow = find_or_add(key);
  if (flow == nullptr) {
    ++untracked_;
    if (bytes >= tau) return {FlowState::kElephant, bytes, 1.0};
    return {FlowState::kMouse, bytes, 0.0};
  }
  flow->phi += bytes;
  flow->last = interval_;
  ++flow->active;
  if (flow->phi >= tau) return {FlowState::kElephant, flow->phi, 1.0};
  if (flow->active < config_.delta) return {FlowState::kMouse, flow->phi, 0.0};
  if (flow->active == config_.delta) flow->potential_since = now;
  return {FlowState::kPotential, flow->phi, weight(*flow, now)};
}

void FlowStates::end_interval() {
  std::size_t kept = 0;
  for (const Flow& flow : flows_) {
    if (interval_ - flow.last < config_.delta) flows_[kept++] = flow;
  }
  const bool dropped = kept < flows_.size();
  flows_.resize(kept);
  // rebuilding is cheaper than it looks: the history holds a few intervals' worth of flows
  if (dropped) reindex(index_.size());
  ++interval_;
}

FlowStates::Flow* FlowStates::find_or_add(std::uint32_t key) {
  if (index_.empty()) reindex(1024);
  std::size_t at = mix32(key) & (index_.size() - 1);
  for (; index_[at] != 0; at = (at + 1) & (index_.size() - 1)) {
    Flow& flow = flows_[index_[at] - 1];
    if (flow.key == key) return &flow;
  }
  if (flows_.size() >= config_.max_flows) return nullptr;
  flows_.emplace_back();
  flows_.back().key = key;
  if (flows_.size() > peak_) peak_ = flows_.size();
  if (flows_.size() * 2 > index_.size()) {
    reindex(index_.size() * 2);
  } else {
    index_[at] = static_cast<std::uint32_t>(flows_.size());
  }
  return &flows_.back();
}

void FlowStates::reindex(std::size_t slots) {
  index_.assign(slots, 0);
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    std::size_t at = mix32(flows_[i].key) & (slots - 1);
    while (index_[at] != 0) at = (at + 1) & (slots - 1);
    index_[at] = static_cast<std::uint32_t>(i + 1);
  }
}

}  // namespace dcqcn
