// What a kind of monitor is: one class, one file, one line in list.hpp. The engines choose among
// them once per packet or once per batch of a ToR, without a virtual call.
#pragma once

#include <concepts>
#include <cstdint>
#include <vector>

#include "model/base/archive.hpp"
#include "model/base/units.hpp"
#include "model/monitors/counters.hpp"
#include "model/monitors/flow_run.hpp"
#include "model/monitors/fsd.hpp"
#include "model/monitors/options.hpp"
#include "model/monitors/per_tor.hpp"
#include "model/monitors/verdicts.hpp"

namespace dcqcn::monitors {

/// Where a monitor works.
struct Place {
  int switches = 0;  // bounds the ToR numbers
  std::uint64_t seed = 0;
};

template <class K>
concept Kind = requires(K kind, const K& constant, const typename K::Options& options, Place place,
                        std::vector<FlowRun> runs, FsdReport& out, Verdicts& verdicts, Time now) {
  // in a scenario: kind=NAME and the keys of fields(), options.check() looks at them together
  { K::kName } -> std::convertible_to<const char*>;
  { K::fields() } -> std::same_as<Fields<typename K::Options>>;
  requires std::derived_from<typename K::Options, CommonOptions>;
  requires std::equality_comparable<typename K::Options>;
  K(options, place);
  // false: record() does nothing
  { K::kWantsPackets } -> std::convertible_to<bool>;
  // false: record_runs() is never called
  { K::kTakesRuns } -> std::convertible_to<bool>;
  // what the weights of runs are: packets or bytes
  { constant.counts_packets() } -> std::same_as<bool>;
  // a data packet (ToR, key of the flow, payload bytes), in the order in which the ToR gets them
  kind.record(0, 1u, 1000u);
  // the same for packets of several ports at once; false if the order may matter: nothing is
  // counted then
  { kind.record_runs(0, runs) } -> std::same_as<bool>;
  // reads and resets the counters and adds up the network's distribution and bytes on the wire
  kind.end_interval(now, out, verdicts);
  // memory of data and control plane, flows tracked and not
  constant.report_cost(out);
};

/// The first instant after `now` of the grid 0, step, 2 step, ...
inline Time next_after(Time now, Time step) { return (now / step + 1) * step; }

/// A kind that counts with a Counter at every ToR; `More` is what a ToR keeps beside it.
template <class CounterType, class More>
class Counting {
 public:
  static constexpr bool kWantsPackets = true;
  static constexpr bool kTakesRuns = true;

  template <class Options>
  Counting(const Options& options, const Place& place, const More& fresh)
      : tors_(place.switches), fresh_(fresh), counter_(options) {}

  bool counts_packets() const { return CounterType::counts_packets(counter_); }

  void record(int tor, std::uint32_t key, std::uint32_t payload_bytes) {
    at(tor).counter.add(key, payload_bytes);
  }
  bool record_runs(int tor, std::vector<FlowRun>& runs) {
    std::vector<FlowRun> missed;  // most often none: its own, since ToRs record at the same time
    return runs.empty() || at(tor).counter.add_runs(runs, missed);
  }

  void visit(Archive& a) { a.all<Counting>(tors_, built(fresh_), built(counter_)); }

 protected:
  struct Tor {
    CounterType counter;
    More more;

    void visit(Archive& a) { a.all<Tor>(counter, more); }
  };

  Tor& at(int tor) {
    return tors_.at(tor, [&] { return Tor{CounterType(counter_, tor), fresh_}; });
  }

  PerTor<Tor> tors_;

 private:
  More fresh_;
  typename CounterType::Options counter_;
};

/// A ToR's message to the controller, empty.
inline LocalFsd local_of(int tor, std::uint32_t periods = 1) {
  return {.node = static_cast<std::uint32_t>(tor), .periods = periods};
}

}  // namespace dcqcn::monitors
