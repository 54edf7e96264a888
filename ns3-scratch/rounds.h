// SPDX-License-Identifier: GPL-2.0-only
// Rounds of collective operations: how long each took, as `dcqcn-gym simulate` tells it.
#ifndef DCQCN_ROUNDS_H
#define DCQCN_ROUNDS_H

#include <map>
#include <string>
#include <vector>

#include "model/metrics.hpp"

namespace ns3 {

/// A workload that repeats a collective operation: a line `#! collective ...` of the scenario.
/// `bytes` is the buffer of one rank, `flows` the number of flows of a round.
struct Collective {
  int64_t workload = 0;
  std::string kind;
  int64_t ranks = 2, bytes = 0, flows = 1, pause_ps = 0;

  /// busbw / algbw as nccl-tests have it.
  double BusFactor() const;
};

/// Finds the finished rounds among finished flows. Rounds never overlap: the next one starts after
/// the last flow of the one before.
class Rounds {
 public:
  explicit Rounds(const std::vector<Collective>& collectives);
  bool Empty() const { return m_progress.empty(); }
  /// The line of collectives.csv that this flow completes, or nothing.
  std::string Add(const ::dcqcn::FinishedFlow& flow);
  /// The value of `collectives` in summary.json.
  std::string Summary() const;

  static const char* Header();

 private:
  struct Progress {
    Collective collective;
    int64_t flows = 0, start = 0, end = -1, rounds = 0;
    int64_t total = 0, shortest = 0, longest = 0;  // times of finished rounds, ps
  };
  std::map<int64_t, Progress> m_progress;
};

}  // namespace ns3
#endif
