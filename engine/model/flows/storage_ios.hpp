// Closed-loop storage: every computing host keeps `depth` IOs outstanding, each on a storage node.
//
// A read is a request and the block that answers it; a write is the block, a copy of it from that
// node to each of the next `copies` nodes of the list, their replies, and a reply to the host. The
// last byte of the last of these makes the host issue its next IO. Disks take no time.
#pragma once

#include "model/base/random_stream.hpp"
#include "model/flows/reacting.hpp"

namespace dcqcn {

class StorageIos final : public Reacting {
 public:
  StorageIos(const WorkloadSpec& spec, std::uint32_t workload, std::uint64_t seed);

  std::uint32_t lanes() const override { return static_cast<std::uint32_t>(spec_.hosts.size()); }
  void due(std::uint32_t lane, Time when, std::vector<FlowStart>& out) override;
  Wake arrived(std::uint32_t tag, int host, Time when, std::vector<FlowStart>& out) override;
  void visit(Archive& a) override { a.all<StorageIos>(kMembers, hosts_, ios_); }

 private:
  // the tag of its messages is its place: host by host, `depth` places each
  struct Io {
    std::uint32_t node = 0;  // of spec_.dsts
    Bytes bytes = 0;
    bool read = false;
    int copies_left = -1;  // -1: the node has not heard of it
  };
  // The k-th IO of a host is the same whenever it is issued: kind, size and node come from the
  // host's own stream, three draws for each.
  struct Host {
    RandomStream draws;
    std::int64_t issued = 0;
  };

  void issue(std::uint32_t tag, Time when, std::vector<FlowStart>& out);
  void serve(std::uint32_t tag, Time when, std::vector<FlowStart>& out);
  int host_of(std::uint32_t tag) const {
    return spec_.hosts[tag / static_cast<std::uint32_t>(spec_.depth)];
  }

  std::vector<Host> hosts_;
  std::vector<Io> ios_;
};

}  // namespace dcqcn
