// The graph of a job: transfers, computation and joins, each of which starts when all before it are
// done. docs/reference/model.md has the rules; envs/scenario/job_graph.py writes the files.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/base/units.hpp"

namespace dcqcn {

enum class JobKind : std::uint8_t {
  kTransfer,  // over the fabric
  kLocal,     // inside a server
  kDelay,     // computation
  kJoin,
  kRepeat,  // the last node of a counted loop
};
inline constexpr int kJobKinds = 5;

// what a node is; beside it are remembered 4 bytes for its edges, 4 per edge, and 12 of every run
struct JobNode {
  std::uint64_t value : 55 = 0;  // bytes, picoseconds or repetitions
  std::uint64_t kind : 3 = 0;
  std::uint64_t outside : 1 = 0;  // of all loops: done once in a round
  std::uint64_t heard : 1 = 0;    // a successor starts at its sender, when the ACK is back
  std::uint16_t src = 0;
  std::uint16_t dst = 0;  // of all but transfers the same
  std::uint16_t connection = 0;
  std::uint16_t label = 0;  // after check() a place in JobGraph::labels; 0: none

  JobKind is() const { return static_cast<JobKind>(kind); }
  bool moves() const { return is() == JobKind::kTransfer || is() == JobKind::kLocal; }
  bool operator==(const JobNode&) const = default;
};
static_assert(sizeof(JobNode) == 16);

struct JobGraph {
  struct Loop {  // its span; `last` starts `begin` anew
    std::uint32_t begin = 0;
    std::uint32_t last = 0;
    bool operator==(const Loop&) const = default;
  };

  std::vector<JobNode> nodes;
  std::vector<std::uint32_t> first;       // successor of every node, and their number
  std::vector<std::uint32_t> successors;  // of higher numbers
  std::vector<Loop> loops;                // by `begin`
  std::uint32_t endpoints = 0;
  std::vector<std::uint16_t> labels;  // a label in another loop counts as another one

  std::uint32_t size() const { return static_cast<std::uint32_t>(nodes.size()); }
  template <class F>
  void for_each_successor(std::uint32_t node, F&& f) const {
    for (std::uint32_t i = first[node]; i < first[node + 1]; ++i) f(successors[i]);
  }

  // Throws std::invalid_argument for what cannot be carried out; sets JobNode::outside, heard
  // and `labels`.
  void check();
  // The bytes of a file; throws std::invalid_argument.
  static JobGraph read(std::string_view bytes);
  bool operator==(const JobGraph&) const = default;
};

// a node as a line of the compiled scenario has it
struct JobLine {
  JobNode node;
  std::vector<int> after;
  int begin = -1;  // of a repeat

  bool operator==(const JobLine&) const = default;
};
JobGraph graph_of(const std::vector<JobLine>& lines, std::uint32_t endpoints);

}  // namespace dcqcn
