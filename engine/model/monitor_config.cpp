// Reading and checking the monitor line of a compiled scenario.
#include <charconv>
#include <stdexcept>
#include <string>

#include "model/monitor.hpp"

namespace dcqcn {

namespace {

[[noreturn]] void fail(const std::string& what) { throw std::invalid_argument("monitor: " + what); }

template <typename T>
T number(const std::string& key, const std::string& text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) {
    fail(key + " = '" + text + "' is not a number in range");
  }
  return value;
}

MonitorKind kind_of(const std::string& name) {
  if (name == "none") return MonitorKind::kNone;
  if (name == "exact") return MonitorKind::kExact;
  if (name == "elastic") return MonitorKind::kElastic;
  if (name == "elastic-naive") return MonitorKind::kElasticNaive;
  if (name == "netflow") return MonitorKind::kNetflow;
  if (name == "chameleon") return MonitorKind::kChameleon;
  fail("unknown kind '" + name +
       "'; expected elastic, exact, elastic-naive, netflow, chameleon or none");
}

PeWeight weight_of(const std::string& name) {
  if (name == "ratio") return PeWeight::kRatio;
  if (name == "logistic") return PeWeight::kLogistic;
  if (name == "survival") return PeWeight::kSurvival;
  fail("unknown pe_weight '" + name + "'; expected ratio, logistic or survival");
}

bool flag(const std::string& key, const std::string& text) {
  if (text != "0" && text != "1") fail(key + " = '" + text + "'; expected 0 or 1");
  return text == "1";
}

void set_sizes(FlowStateConfig& states, std::size_t cdf, const std::vector<Cdf>& cdfs) {
  if (cdf >= cdfs.size()) fail("sizes_cdf names a cdf that the scenario does not have");
  states.sizes.clear();
  for (const CdfPoint& p : cdfs[cdf]) states.sizes.push_back({p.bytes, p.probability});
}

void set(MonitorConfig& config, const std::string& key, const std::string& text,
         const std::vector<Cdf>& cdfs) {
  if (key == "kind") return;
  if (key == "tau") {
    config.states.tau = number<std::int64_t>(key, text);
  } else if (key == "delta") {
    config.states.delta = number<std::uint32_t>(key, text);
  } else if (key == "theta") {
    config.theta = number<double>(key, text);
  } else if (key == "pe_weight") {
    config.states.weight = weight_of(text);
  } else if (key == "sizes_cdf") {
    set_sizes(config.states, number<std::size_t>(key, text), cdfs);
  } else if (key == "max_flows") {
    config.states.max_flows = number<std::size_t>(key, text);
  } else if (key == "heavy_bytes") {
    config.heavy_bytes = number<std::int64_t>(key, text);
  } else if (key == "light_bytes") {
    config.light_bytes = number<std::int64_t>(key, text);
  } else if (key == "unit") {
    if (text != "bytes" && text != "packets") fail("unit is bytes or packets, not '" + text + "'");
    config.count_packets = text == "packets";
  } else if (key == "packet_bytes") {
    config.packet_bytes = number<std::int64_t>(key, text);
  } else if (key == "sample_one_in") {
    config.sample_one_in = number<std::uint32_t>(key, text);
  } else if (key == "export_ps") {
    config.export_every = number<Time>(key, text);
  } else if (key == "local_ps") {
    config.local_every = number<Time>(key, text);
  } else if (key == "upload_ps") {
    config.upload_every = number<Time>(key, text);
  } else if (key == "labels") {
    config.labels = flag(key, text);
  } else if (key == "trace") {
    config.trace = flag(key, text);
  } else {
    fail("unknown key '" + key + "'");
  }
}

}  // namespace

MonitorConfig MonitorConfig::from_options(
    const std::string& kind, const std::vector<std::pair<std::string, std::string>>& options,
    const std::vector<Cdf>& cdfs) {
  MonitorConfig config;
  config.kind = kind_of(kind);
  for (const auto& [key, text] : options) set(config, key, text, cdfs);
  config.validate();
  return config;
}

void MonitorConfig::validate() const {
  if (states.tau <= 0) {
    fail("tau, the bytes that make an elephant, must be above 0, not " +
         std::to_string(states.tau));
  }
  if (states.delta < 1) fail("delta, the window in intervals, must be at least 1, not 0");
  if (!(theta >= 0.0)) fail("theta, the KL divergence that triggers, must not be negative");
  if (heavy_bytes < ElasticSketch::kBucketBytes) {
    fail("heavy_bytes = " + std::to_string(heavy_bytes) + " is too small for one bucket of " +
         std::to_string(ElasticSketch::kBucketBytes) + " bytes");
  }
  const int width = count_packets ? 1 : 4;
  if (light_bytes < width) {
    fail("light_bytes = " + std::to_string(light_bytes) + " is too small for one counter of " +
         std::to_string(width) + " bytes");
  }
  if (packet_bytes < 1) fail("packet_bytes must be at least 1");
  if (sample_one_in < 1) fail("sample_one_in must be at least 1");
  if (states.max_flows < 1 || states.max_flows > (std::size_t{1} << 30)) {
    fail("max_flows must be 1 to 2^30");
  }
  if (export_every < 1 || local_every < 1 || upload_every < 1) {
    fail("export_ps, local_ps and upload_ps must be above 0");
  }
  if (states.weight == PeWeight::kSurvival && states.sizes.empty()) {
    fail("pe_weight = survival needs sizes_cdf, the number of a cdf");
  }
}

}  // namespace dcqcn
