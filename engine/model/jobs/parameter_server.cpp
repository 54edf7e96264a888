#include "model/jobs/parameter_server.hpp"

namespace dcqcn {

void ParameterServer::due(std::uint32_t lane, Time when, std::vector<FlowStart>& out) {
  out.push_back(message(
      lane, {.src = spec_.hosts[lane], .dst = spec_.dsts[0], .bytes = spec_.bytes, .start = when}));
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
    out.push_back(message(
        worker, {.src = host, .dst = spec_.hosts[worker], .bytes = spec_.bytes, .start = when}));
  }
  return {};
}

}  // namespace dcqcn
