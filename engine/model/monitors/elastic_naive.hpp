// Elastic Sketch, each interval judged alone: what the sketch says without PARALEON's window.
#pragma once

#include "model/monitors/kind.hpp"

namespace dcqcn::monitors {

struct Nothing {};

class ElasticNaive : public Counting<SketchCounter, Nothing> {
 public:
  static constexpr const char* kName = "elastic-naive";
  struct Options : CommonOptions, SketchOptions {
    bool operator==(const Options&) const = default;
    void check(const Line& line) { SketchOptions::check(line); }
  };
  static Fields<Options> fields() { return sketch_fields<Options>(); }

  ElasticNaive(const Options& options, const Place& place)
      : Counting(options, place, {}), tau_(options.tau) {}

  void end_interval(Time, FsdReport& out, Verdicts& verdicts) {
    tors_.for_each([&](int tor, Tor& t) {
      LocalFsd local = local_of(tor);
      verdicts.begin(tor);
      t.counter.read_and_reset([&](std::uint32_t key, std::uint64_t bytes) {
        count(local, verdicts, key, judge_alone(bytes, tau_));
      });
      out.add(local);
      out.monitor_bytes += sizeof(LocalFsd);
    });
  }

  void report_cost(FsdReport& out) const {
    tors_.for_each([&](int, const Tor& t) { out.data_plane_bytes += t.counter.memory_bytes(); });
  }

  void visit(Archive& a) {
    Counting::visit(a);
    a.all<ElasticNaive>(Built<Counting>{}, built(tau_));
  }

 private:
  std::int64_t tau_;
};

}  // namespace dcqcn::monitors
