#include "model/parameter_server.hpp"

namespace dcqcn {

FlowStart ParameterServer::message(std::uint32_t worker, int src, int dst, Time when) const {
  return {when, spec_.bytes, src, dst, workload_, 1, static_cast<std::uint8_t>(spec_.priority),
          0,    worker};
}

void ParameterServer::due(std::uint32_t lane, Time when, std::vector<FlowStart>& out) {
  out.push_back(message(lane, spec_.hosts[lane], spec_.dsts[0], when));
}

Reacting::Wake ParameterServer::arrived(std::uint32_t tag, int host, Time when,
                                        std::vector<FlowStart>& out) {
  if (host != spec_.dsts[0]) {
    // no worker can have its answer before the server has decided, nor its next one after
    return more_ ? Wake{when + spec_.off, tag} : Wake{};
  }
  if (++pushed_ < lanes()) return {};
  pushed_ = 0;
  ++answered_;
  more_ = when < spec_.stop && (spec_.rounds == 0 || answered_ < spec_.rounds);
  for (std::uint32_t worker = 0; worker < lanes(); ++worker) {
    out.push_back(message(worker, host, spec_.hosts[worker], when));
  }
  return {};
}

}  // namespace dcqcn
