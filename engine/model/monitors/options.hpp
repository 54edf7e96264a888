// Options of the monitor line that several kinds of monitor share. A kind's options are a struct
// that derives from what it shares; its table of keys joins the tables of the parts.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "model/base/units.hpp"
#include "model/monitors/elastic_sketch.hpp"
#include "model/monitors/flow_states.hpp"
#include "model/text/compiled_line.hpp"

namespace dcqcn::monitors {

inline constexpr Time kLongestPeriod = 1'000'000'000'000'000;  // 1000 s
inline constexpr Bytes kMostMemory = Bytes{1} << 34;

template <class O>
using Fields = std::vector<Field<O>>;

template <class O>
Fields<O> join(Fields<O> a, const Fields<O>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// What every kind has.
struct CommonOptions {
  std::int64_t tau = 1'000'000;  // bytes that make an elephant
  double theta = 0.01;           // KL divergence above which a change triggers
  bool labels = false;           // keep the truth beside the monitor and list every flow
  bool trace = false;            // keep every recorded packet until it is taken

  bool operator==(const CommonOptions&) const = default;
  /// Refuses values that do not go together; throws std::invalid_argument.
  void check(const Line&) {}
};

template <class O>
Fields<O> common_fields() {
  // labels and trace are set by studies alone
  return {
      {"kind", [](O&, const Value&) {}},  // has chosen this table
      {"tau", [](O& o, const Value& v) { o.tau = v.whole(1, kMostBytes); }},
      {"theta",
       [](O& o, const Value& v) { o.theta = v.real(0, std::numeric_limits<double>::infinity()); }},
      {"labels", [](O& o, const Value& v) { o.labels = v.flag(); }, Absent::kAlways},
      {"trace", [](O& o, const Value& v) { o.trace = v.flag(); }, Absent::kAlways},
  };
}

/// Of kinds that keep a history of the flows.
struct StateOptions : CommonOptions {
  std::uint32_t delta = 3;  // intervals of activity that make a potential elephant
  PeWeight pe_weight = PeWeight::kRatio;
  std::size_t max_flows = 1 << 16;  // bound on the history
  int sizes_cdf = -1;               // number of the cdf that becomes `sizes`; -1: none
  std::vector<SizePoint> sizes;     // for PeWeight::kSurvival

  bool operator==(const StateOptions&) const = default;
  FlowStateConfig states() const { return {tau, delta, pe_weight, sizes, max_flows}; }
  void check(const Line& line) {
    if (pe_weight != PeWeight::kSurvival) {
      sizes_cdf = -1;  // would change nothing
    } else if (sizes_cdf < 0) {
      line.fail("pe_weight = survival needs sizes_cdf, the number of a cdf");
    }
  }
};

template <class O>
Fields<O> state_fields() {
  return {
      {"delta",
       [](O& o, const Value& v) { o.delta = static_cast<std::uint32_t>(v.whole(1, 1'000'000)); }},
      {"pe_weight",
       [](O& o, const Value& v) {
         o.pe_weight = v.choice<PeWeight>({{"ratio", PeWeight::kRatio},
                                           {"logistic", PeWeight::kLogistic},
                                           {"survival", PeWeight::kSurvival}});
       }},
      {"max_flows",
       [](O& o, const Value& v) { o.max_flows = static_cast<std::size_t>(v.whole(1, 1 << 30)); }},
      {"sizes_cdf", [](O& o, const Value& v) { o.sizes_cdf = static_cast<int>(v.whole(0, 65535)); },
       Absent::kAlways},  // needed by one weight alone
  };
}

/// Of kinds that count with an Elastic Sketch.
struct SketchOptions {
  std::int64_t heavy_bytes = 153'600;
  std::int64_t light_bytes = 460'800;
  bool count_packets = false;  // of `packet_bytes`, not bytes
  std::int64_t packet_bytes = 1000;
  std::int64_t hash_seed = 0;  // other hash functions: other flows collide

  bool operator==(const SketchOptions&) const = default;
  void check(const Line& line) const {
    const int width = count_packets ? 1 : 4;
    if (light_bytes >= width) return;
    line.fail("light_bytes = " + std::to_string(light_bytes) + " is too small for one counter of " +
              std::to_string(width) + " bytes");
  }
};

template <class O>
Fields<O> sketch_fields() {
  return {
      {"heavy_bytes",
       [](O& o, const Value& v) {
         o.heavy_bytes = v.whole(ElasticSketch::kBucketBytes, kMostMemory);
       }},
      {"light_bytes", [](O& o, const Value& v) { o.light_bytes = v.whole(1, kMostMemory); }},
      {"unit",
       [](O& o, const Value& v) {
         o.count_packets = v.choice<bool>({{"bytes", false}, {"packets", true}});
       }},
      {"packet_bytes", [](O& o, const Value& v) { o.packet_bytes = v.whole(1, 65535); },
       Absent::kAlways},
      {"hash_seed", [](O& o, const Value& v) { o.hash_seed = v.whole(0, 2147483647); },
       Absent::kAlways},
  };
}

}  // namespace dcqcn::monitors
