// The list line of the toy scheme; see DCQCN_GYM_EXTRA_SCHEMES in model/schemes/list.hpp.
#pragma once

#include "tests/toy/toy_scheme.hpp"

namespace dcqcn {
using ExtraSchemes = SchemeList<Toy>;
}
