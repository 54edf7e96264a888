// The kinds of monitors: one line each. A new kind is its file, its line here and its options in
// envs/scenario/monitor.py.
#pragma once

#include <variant>

#include "model/monitors/chameleon.hpp"
#include "model/monitors/elastic.hpp"
#include "model/monitors/elastic_naive.hpp"
#include "model/monitors/exact.hpp"
#include "model/monitors/flow_log.hpp"
#include "model/monitors/netflow.hpp"
#include "model/monitors/none.hpp"

namespace dcqcn::monitors {

template <Kind... K>
struct List {
  using Any = std::variant<K...>;
  // by the same index as the kind, for some kinds have options of one type
  using AnyOptions = std::variant<typename K::Options...>;
};

using Kinds = List<None,          //
                   Exact,         //
                   Elastic,       //
                   ElasticNaive,  //
                   Netflow,       //
                   Chameleon,     //
                   FlowLog>;

}  // namespace dcqcn::monitors
