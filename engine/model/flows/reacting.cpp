#include "model/flows/reacting.hpp"

#include "model/flows/storage_ios.hpp"
#include "model/jobs/parameter_server.hpp"

namespace dcqcn {

std::unique_ptr<Reacting> make_reacting(const WorkloadSpec& spec, std::uint32_t workload,
                                        std::uint64_t seed) {
  if (spec.pattern == Pattern::kStorage) {
    return std::make_unique<StorageIos>(spec, workload, seed);
  }
  if (spec.pattern == Pattern::kParameterServer) {
    return std::make_unique<ParameterServer>(spec, workload);
  }
  return nullptr;
}

}  // namespace dcqcn
