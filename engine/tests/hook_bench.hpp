// Calls the sender's hooks of a scheme directly, without a network: for rules worked out by hand.
#pragma once

#include <vector>

#include "model/schemes/scheme_of.hpp"
#include "tests/plain_setting.hpp"

namespace dcqcn {

inline SchemeSpec spec_of(const char* name) {
  SchemeSpec spec;
  spec.name = name;
  return spec;
}

// one queue pair from host 0 to host 1, and the NICs of both
template <class S>
struct HookBench {
  typename S::Setting setting;
  S scheme;
  Connection connection{.src = 0, .dst = 1, .line = gbps(100)};
  typename S::Nic nic{};
  typename S::Sender sender{};
  typename S::Receiver receiver{};
  SchemeNotes notes;

  explicit HookBench(const typename S::Setting& s, const SchemeSpec& spec = spec_of(S::kName),
                     const Transport& transport = {})
      : setting(s), scheme(spec, transport) {
    notes.counters.resize(S::kCounters.size());
  }
  // what a hook is told at t microseconds
  Here<S> at(double t) { return {connection, setting, nic, notes, us(t)}; }
  void start(double t) { scheme.start(sender, at(t)); }
  Rate rate() const { return scheme.pace(sender, setting).rate; }
};

}  // namespace dcqcn
