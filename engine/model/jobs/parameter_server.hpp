// Training with a parameter server: every worker pushes its gradient, the server answers all of
// them once it has heard all, and a worker that has its answer computes for `off` and pushes again.
#pragma once

#include "model/flows/reacting.hpp"

namespace dcqcn {

class ParameterServer final : public Reacting {
 public:
  ParameterServer(const WorkloadSpec& spec, std::uint32_t workload) : Reacting(spec, workload) {}

  // a worker's place in the list is its lane and the tag of its messages
  std::uint32_t lanes() const override { return static_cast<std::uint32_t>(spec_.hosts.size()); }
  void due(std::uint32_t lane, Time when, std::vector<FlowStart>& out) override;
  Wake arrived(std::uint32_t tag, int host, Time when, std::vector<FlowStart>& out) override;
  void visit(Archive& a) override { a.all<ParameterServer>(kMembers, pushed_, answered_, more_); }

 private:
  std::uint32_t pushed_ = 0;  // gradients of this iteration that the server has
  std::int64_t answered_ = 0;
  bool more_ = true;  // another iteration follows the answer
};

}  // namespace dcqcn
