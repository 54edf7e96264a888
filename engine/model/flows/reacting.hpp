// Workloads in which the arrival of a message makes its receiver send: storage, parameter server.
// All that one does depends on what has arrived at that host and on what lies causally before it,
// so engines that run hosts in another order, a window at a time, do the same.
#pragma once

#include <memory>
#include <vector>

#include "model/base/archive.hpp"
#include "model/flows/flow_start.hpp"
#include "model/text/scenario.hpp"

namespace dcqcn {

class Reacting {
 public:
  // lane `index` is to be due at `time`
  struct Wake {
    Time time = kNever;
    std::uint32_t index = 0;
  };

  virtual ~Reacting() = default;
  // lanes 0, 1, ... that are due when the workload starts
  virtual std::uint32_t lanes() const = 0;
  virtual void due(std::uint32_t lane, Time when, std::vector<FlowStart>& out) = 0;
  // the last byte of the message `tag` has come to `host`; what this host answers at the same
  // instant is appended to `out`
  virtual Wake arrived(std::uint32_t tag, int host, Time when, std::vector<FlowStart>& out) = 0;
  // model/base/archive.hpp: its own members behind kMembers
  virtual void visit(Archive& a) = 0;

 protected:
  static constexpr Built<void*, void*, std::uint32_t> kMembers{};  // all that stand here
  Reacting(const WorkloadSpec& spec, std::uint32_t workload) : spec_(spec), workload_(workload) {}
  FlowStart message(std::uint32_t tag, const Transfer& t) const {
    FlowStart flow = flow_of(spec_, workload_, t);
    flow.tag = tag;
    return flow;
  }

  const WorkloadSpec& spec_;

 private:
  std::uint32_t workload_;
};

// null for a workload of another kind
std::unique_ptr<Reacting> make_reacting(const WorkloadSpec& spec, std::uint32_t workload,
                                        std::uint64_t seed);

}  // namespace dcqcn
