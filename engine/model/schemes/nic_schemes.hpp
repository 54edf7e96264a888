// Which scheme runs in which NIC.
#pragma once

#include "model/base/archive.hpp"
#include "model/schemes/make.hpp"
#include "model/text/scenario.hpp"

namespace dcqcn {

// settings of all NICs, read and checked, scheme by scheme
using NicSettings = std::vector<std::unique_ptr<SchemeSettings>>;

// what a scheme counted in an interval
struct SchemeReport {
  const SchemeNames* names = nullptr;
  std::vector<std::uint64_t> counters;
};

class NicSchemes {
 public:
  // receivers: of the transport; throws std::invalid_argument
  NicSchemes(const Scenario& scenario, const std::vector<QpReceiver>& receivers);

  Scheme& of(int host) { return *of_host_[static_cast<std::size_t>(host)]; }
  const Scheme& of(int host) const { return *of_host_[static_cast<std::size_t>(host)]; }
  bool any(bool Scheme::* wish) const;

  // knob values that a NIC's row holds: the most that any of the schemes has
  std::size_t columns() const;
  // throws std::invalid_argument unless there is a row a host, as wide as columns()
  void check_shape(std::size_t rows, std::size_t cells) const;
  // one row a host; throws std::invalid_argument
  NicSettings read_settings(const SiRows& rows) const;
  Pace change_setting(int host, std::uint32_t slot, const NicSettings& next, Time now) {
    const std::size_t scheme = index_[static_cast<std::size_t>(host)];
    return of(host).change_setting(slot, *next[scheme], now);
  }
  void put_in_force(const NicSettings& settings);

  // counters since the last call
  void take_counters(std::vector<SchemeReport>& out);
  void trace(bool wanted);
  bool tracing() const;
  // what each scheme traced since the last call, by time, then by source
  std::vector<std::pair<const SchemeNames*, std::vector<SchemeEvent>>> take_trace();

  // all but the settings in force
  void visit(Archive& a) {
    a.all<NicSchemes>(built(schemes_), built(index_), built(of_host_));
    for (const auto& scheme : schemes_) scheme->visit(a);
  }

 private:
  void bind(const SchemeSpec& spec, const Scenario& scenario, const std::vector<bool>& hosts,
            const std::vector<QpReceiver>& receivers);

  std::vector<std::unique_ptr<Scheme>> schemes_;
  std::vector<std::size_t> index_;  // by host, in schemes_
  std::vector<Scheme*> of_host_;
};

}  // namespace dcqcn
