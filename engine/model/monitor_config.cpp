#include "model/monitor_config.hpp"

#include <limits>

#include "model/elastic_sketch.hpp"

namespace dcqcn {

namespace {

using Config = MonitorConfig;

constexpr Time kLongestPeriod = 1'000'000'000'000'000;  // 1000 s
constexpr Bytes kMostMemory = Bytes{1} << 34;

// keys that are set by studies alone, or needed by some settings only, may be absent
const Field<Config> kMonitor[] = {
    {"kind",
     [](Config& c, const Value& v) {
       c.kind = v.choice<MonitorKind>({{"none", MonitorKind::kNone},
                                       {"exact", MonitorKind::kExact},
                                       {"elastic", MonitorKind::kElastic},
                                       {"elastic-naive", MonitorKind::kElasticNaive},
                                       {"netflow", MonitorKind::kNetflow},
                                       {"chameleon", MonitorKind::kChameleon}});
     }},
    {"tau", [](Config& c, const Value& v) { c.states.tau = v.whole(1, kMostBytes); }},
    {"delta",
     [](Config& c, const Value& v) {
       c.states.delta = static_cast<std::uint32_t>(v.whole(1, 1'000'000));
     }},
    {"theta", [](Config& c,
                 const Value& v) { c.theta = v.real(0, std::numeric_limits<double>::infinity()); }},
    {"pe_weight",
     [](Config& c, const Value& v) {
       c.states.weight = v.choice<PeWeight>({{"ratio", PeWeight::kRatio},
                                             {"logistic", PeWeight::kLogistic},
                                             {"survival", PeWeight::kSurvival}});
     }},
    {"heavy_bytes",
     [](Config& c, const Value& v) {
       c.heavy_bytes = v.whole(ElasticSketch::kBucketBytes, kMostMemory);
     }},
    {"light_bytes", [](Config& c, const Value& v) { c.light_bytes = v.whole(1, kMostMemory); }},
    {"max_flows",
     [](Config& c, const Value& v) {
       c.states.max_flows = static_cast<std::size_t>(v.whole(1, 1 << 30));
     }},
    {"unit",
     [](Config& c, const Value& v) {
       c.count_packets = v.choice<bool>({{"bytes", false}, {"packets", true}});
     }},
    {"sample_one_in",
     [](Config& c, const Value& v) {
       c.sample_one_in = static_cast<std::uint32_t>(v.whole(1, 1'000'000));
     }},
    {"export_ps", [](Config& c, const Value& v) { c.export_every = v.whole(1, kLongestPeriod); }},
    {"local_ps", [](Config& c, const Value& v) { c.local_every = v.whole(1, kLongestPeriod); }},
    {"upload_ps", [](Config& c, const Value& v) { c.upload_every = v.whole(1, kLongestPeriod); }},
    {"sizes_cdf",
     [](Config& c, const Value& v) { c.sizes_cdf = static_cast<int>(v.whole(0, 65535)); },
     Absent::kAlways},
    {"packet_bytes", [](Config& c, const Value& v) { c.packet_bytes = v.whole(1, 65535); },
     Absent::kAlways},
    {"labels", [](Config& c, const Value& v) { c.labels = v.flag(); }, Absent::kAlways},
    {"trace", [](Config& c, const Value& v) { c.trace = v.flag(); }, Absent::kAlways},
};

}  // namespace

MonitorConfig MonitorConfig::read(const Line& line) {
  line.expect_values(0, "keys only");
  MonitorConfig config;
  read_keys<Config>(line, kMonitor, config);
  const int width = config.count_packets ? 1 : 4;
  if (config.light_bytes < width) {
    line.fail("light_bytes = " + std::to_string(config.light_bytes) +
              " is too small for one counter of " + std::to_string(width) + " bytes");
  }
  const bool survival = config.states.weight == PeWeight::kSurvival;
  if (survival && config.sizes_cdf < 0) {
    line.fail("pe_weight = survival needs sizes_cdf, the number of a cdf");
  }
  if (!survival) config.sizes_cdf = -1;  // would change nothing
  return config;
}

}  // namespace dcqcn
