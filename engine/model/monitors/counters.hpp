// What counts the packets of one ToR between two read-outs: exact counters, or a sketch.
#pragma once

#include <cstdint>
#include <vector>

#include "model/base/archive.hpp"
#include "model/flows/flow_table.hpp"
#include "model/monitors/elastic_sketch.hpp"
#include "model/monitors/flow_run.hpp"
#include "model/monitors/options.hpp"

namespace dcqcn::monitors {

/// A counter for every flow; memory has no end.
class FlowCounter {
 public:
  using Options = CommonOptions;

  FlowCounter() = default;
  FlowCounter(const Options&, int /*tor*/) {}

  static bool counts_packets(const Options&) { return false; }

  void add(std::uint32_t key, std::uint32_t payload_bytes) { counts_[key] += payload_bytes; }

  /// As add() would in order of arrival; true if that was possible. `missed` is overwritten.
  bool add_runs(std::vector<FlowRun>& runs, std::vector<FlowRun>& missed) {
    missed.clear();
    for (const FlowRun& run : runs) {
      if (std::uint64_t* counted = counts_.find(run.key); counted != nullptr) {
        *counted += run.weight;
      } else {
        missed.push_back(run);
      }
    }
    sort_by_arrival(missed);
    for (const FlowRun& run : missed) counts_[run.key] += run.weight;
    return true;
  }

  /// Calls f(key, bytes) for every flow counted since the last time, and forgets them.
  template <typename F>
  void read_and_reset(F&& f) {
    counts_.for_each(f);
    counts_.clear();
  }

  std::size_t flows() const { return counts_.size(); }
  std::int64_t memory_bytes() const { return static_cast<std::int64_t>(counts_.memory_bytes()); }

  void visit(Archive& a) { a.all<FlowCounter>(counts_); }

 private:
  FlowTable<std::uint64_t> counts_;
};

/// An Elastic Sketch of bytes or packets; what it shows are bytes.
class SketchCounter {
 public:
  using Options = SketchOptions;

  SketchCounter() = default;
  SketchCounter(const Options& options, int tor)
      // a switch's hash functions belong to the switch, not to the seed of the traffic
      : sketch_(
            options.heavy_bytes, options.light_bytes,
            options.count_packets ? ElasticSketch::Light::kBits8 : ElasticSketch::Light::kBits32,
            (static_cast<std::uint64_t>(options.hash_seed) << 32) +
                static_cast<std::uint64_t>(tor) + 1),
        packets_(options.count_packets),
        unit_(static_cast<std::uint64_t>(options.count_packets ? options.packet_bytes : 1)) {}

  static bool counts_packets(const Options& options) { return options.count_packets; }

  void add(std::uint32_t key, std::uint32_t payload_bytes) {
    sketch_.insert(key, packets_ ? 1 : payload_bytes);
  }
  bool add_runs(std::vector<FlowRun>& runs, std::vector<FlowRun>& missed) {
    return sketch_.insert_runs(runs, missed);
  }

  template <typename F>
  void read_and_reset(F&& f) {
    sketch_.for_each([&](std::uint32_t key, std::uint64_t total) { f(key, total * unit_); });
    sketch_.reset();
  }

  bool empty() const { return sketch_.touched_buckets() == 0; }
  std::int64_t memory_bytes() const { return sketch_.memory_bytes(); }

  void visit(Archive& a) { a.all<SketchCounter>(sketch_, packets_, unit_); }

 private:
  ElasticSketch sketch_;
  bool packets_ = false;
  std::uint64_t unit_ = 1;
};

}  // namespace dcqcn::monitors
