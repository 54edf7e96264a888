// The schemes that exist. A new one is a header and a place in this list.
#pragma once

#include "model/schemes/dcqcn.hpp"
#include "model/schemes/dcqcn_plus.hpp"
#include "model/schemes/dolce_plus.hpp"
#include "model/schemes/dolce_rc.hpp"
#include "model/schemes/scheme_of.hpp"
#include "model/schemes/timely.hpp"

namespace dcqcn {

template <class... S>
struct SchemeList {};

using BuiltinSchemes = SchemeList<Dcqcn, DcqcnPlus, Timely, DolceRc, DolcePlus>;

}  // namespace dcqcn

// a header that defines dcqcn::ExtraSchemes, for schemes that are not part of this repository
#ifdef DCQCN_GYM_EXTRA_SCHEMES
#include DCQCN_GYM_EXTRA_SCHEMES
#else
namespace dcqcn {
using ExtraSchemes = SchemeList<>;
}
#endif
