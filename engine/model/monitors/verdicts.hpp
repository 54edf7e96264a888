// What a monitor held each flow for at its last read-out, kept for studies that compare it with
// the truth.
#pragma once

#include <cstdint>
#include <vector>

#include "model/base/archive.hpp"
#include "model/flows/flow_table.hpp"
#include "model/monitors/flow_states.hpp"
#include "model/monitors/fsd.hpp"

namespace dcqcn::monitors {

class Verdicts {
 public:
  /// Keeps nothing with switches = 0.
  explicit Verdicts(int switches = 0) : tables_(static_cast<std::size_t>(switches)) {}

  /// Forgets the verdicts of a ToR: it judges its flows anew.
  void begin(int tor) {
    if (!tables_.empty()) tables_[static_cast<std::size_t>(tor)].clear();
  }
  /// `seen.phi` are the bytes so far according to the monitor.
  void add(int tor, std::uint32_t key, const FlowStates::Observed& seen) {
    if (!tables_.empty()) tables_[static_cast<std::size_t>(tor)][key] = seen;
  }
  /// Null: the monitor has not seen the flow.
  const FlowStates::Observed* find(std::size_t tor, std::uint32_t key) const {
    return tables_[tor].find(key);
  }

  void visit(Archive& a) { a.all<Verdicts>(tables_); }

 private:
  std::vector<FlowTable<FlowStates::Observed>> tables_;
};

/// One interval alone: a flow is an elephant if it sent tau bytes in it, else a mouse.
inline FlowStates::Observed judge_alone(std::uint64_t bytes, std::int64_t tau) {
  const bool elephant = bytes >= static_cast<std::uint64_t>(tau);
  return {elephant ? FlowState::kElephant : FlowState::kMouse, bytes, elephant ? 1.0 : 0.0};
}

/// Counts a judged flow in what its ToR sends.
inline void count(LocalFsd& local, Verdicts& verdicts, std::uint32_t key,
                  const FlowStates::Observed& seen) {
  local.add(seen.state, seen.phi, seen.elephant_share);
  verdicts.add(static_cast<int>(local.node), key, seen);
}

}  // namespace dcqcn::monitors
