// Schemes by name.
#pragma once

#include <memory>
#include <vector>

#include "model/flows/queue_pair.hpp"
#include "model/schemes/scheme.hpp"

namespace dcqcn {

// the scheme of this line, bound to the NICs of `hosts`; throws std::invalid_argument
std::unique_ptr<Scheme> make_scheme(const SchemeSpec& spec, const Transport& transport,
                                    const std::vector<bool>& hosts,
                                    const std::vector<QpReceiver>& receivers);

}  // namespace dcqcn
