#include "model/flows/storage_ios.hpp"

namespace dcqcn {

StorageIos::StorageIos(const WorkloadSpec& spec, std::uint32_t workload, std::uint64_t seed)
    : Reacting(spec, workload), ios_(spec.hosts.size() * static_cast<std::size_t>(spec.depth)) {
  const std::uint64_t id = static_cast<std::uint64_t>(workload) << 32;
  for (const int host : spec.hosts) {
    hosts_.push_back({{seed, Purpose::kArrivals, id + static_cast<std::uint64_t>(host)}});
  }
}

void StorageIos::due(std::uint32_t lane, Time when, std::vector<FlowStart>& out) {
  const auto depth = static_cast<std::uint32_t>(spec_.depth);
  for (std::uint32_t place = 0; place < depth; ++place) issue(lane * depth + place, when, out);
}

void StorageIos::issue(std::uint32_t tag, Time when, std::vector<FlowStart>& out) {
  Host& host = hosts_[tag / static_cast<std::uint32_t>(spec_.depth)];
  if (when >= spec_.stop || (spec_.rounds > 0 && host.issued >= spec_.rounds)) return;
  ++host.issued;
  Io& io = ios_[tag];
  io.read = host.draws.uniform() < spec_.read_share;
  const auto sizes = static_cast<std::uint32_t>(spec_.block_max / spec_.block_min);
  io.bytes = spec_.block_min * (1 + static_cast<Bytes>(host.draws.below(sizes)));
  io.node = host.draws.below(static_cast<std::uint32_t>(spec_.dsts.size()));
  io.copies_left = -1;
  out.push_back(message(tag, {.src = host_of(tag),
                              .dst = spec_.dsts[io.node],
                              .bytes = io.read ? spec_.bytes : io.bytes,
                              .start = when}));
}

Reacting::Wake StorageIos::arrived(std::uint32_t tag, int host, Time when,
                                   std::vector<FlowStart>& out) {
  const int node = spec_.dsts[ios_[tag].node];
  if (host == host_of(tag)) {
    issue(tag, when, out);
  } else if (host == node) {
    serve(tag, when, out);
  } else {  // a copy is in its place
    out.push_back(message(tag, {.src = host, .dst = node, .bytes = spec_.bytes, .start = when}));
  }
  return {};
}

// at the node of the IO: the IO itself, or the reply to a copy
void StorageIos::serve(std::uint32_t tag, Time when, std::vector<FlowStart>& out) {
  Io& io = ios_[tag];
  const int node = spec_.dsts[io.node];
  if (io.copies_left < 0) {
    io.copies_left = io.read ? 0 : spec_.copies;
    for (int i = 1; i <= io.copies_left; ++i) {
      const std::size_t to = (io.node + static_cast<std::size_t>(i)) % spec_.dsts.size();
      out.push_back(
          message(tag, {.src = node, .dst = spec_.dsts[to], .bytes = io.bytes, .start = when}));
    }
  } else {
    --io.copies_left;
  }
  if (io.copies_left == 0) {
    out.push_back(message(tag, {.src = node,
                                .dst = host_of(tag),
                                .bytes = io.read ? io.bytes : spec_.bytes,
                                .start = when}));
  }
}

}  // namespace dcqcn
