// Every figure of an interval report as a flat list of named 64-bit values: two reports are the
// same exactly if their lists are, and a digest of the list stands for the report.
//
// The figures are the rows of sim/report_fields.hpp. tests/digests/engine-fuzz.txt holds digests of
// those whose `digested` is true, in this order; engines are compared in all.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "model/base/random_stream.hpp"
#include "sim/report_fields.hpp"

namespace dcqcn::fuzz {

struct Field {
  const char* name;
  std::size_t index;
  std::uint64_t bits;
  bool digested = true;
};

class Fields {
 public:
  Fields(const IntervalData& data, const Topology& topology) {
    // in the order of the recorded digests
    each(kIntervalFields, 0, data);
    each(kTotalsFields, 0, data.log.totals);
    for (std::size_t i = 0; i < data.ports.size(); ++i) {
      each(kPortFields, i, PortRow{topology, static_cast<int>(i), data.ports[i]});
    }
    add("finished", 0, data.log.finished.size());
    for (std::size_t i = 0; i < data.log.finished.size(); ++i) {
      each(kFinishedFields, i, data.log.finished[i]);
    }
    add("rtts", 0, data.log.rtts.size());
    for (std::size_t i = 0; i < data.log.rtts.size(); ++i) {
      add("rtt pair", i, data.log.rtts[i].pair);
      each(kRttFields, i, data.log.rtts[i]);
    }
    each(kFsdFields, 0, data.fsd);
    add("unlimited_flows", 0, data.unlimited_flows, false);
    add("job_spans", 0, data.log.job_spans.size(), false);
    for (std::size_t i = 0; i < data.log.job_spans.size(); ++i) {
      each(kJobSpanFields, i, data.log.job_spans[i]);
    }
    for (std::size_t s = 0, at = 0; s < data.schemes.size(); ++s) {
      for (const std::uint64_t n : data.schemes[s].counters) add("scheme_counter", at++, n, false);
    }
  }

  std::uint64_t digest(std::uint64_t h) const {
    for (const Field& f : fields_) {
      if (f.digested) h = mix64(h * 0x9E3779B97F4A7C15ull + f.bits);
    }
    return h;
  }

  // "" if both are the same, else the first figure that differs
  std::string difference(const Fields& other) const {
    for (std::size_t i = 0; i < fields_.size() && i < other.fields_.size(); ++i) {
      const Field& a = fields_[i];
      const Field& b = other.fields_[i];
      if (a.bits != b.bits || a.index != b.index) {
        return std::string(a.name) + "[" + std::to_string(a.index) + "]: " + show(a) + " and " +
               show(b);
      }
    }
    return fields_.size() == other.fields_.size() ? "" : "the number of figures differs";
  }

 private:
  template <class Table, class Row>
  void each(const Table& table, std::size_t index, const Row& row) {
    for_each_field(table, [&](const auto& field) {
      const auto& value = field.get(row);
      if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>) {
        add(field.name, index, value, field.digested);
      } else {
        for (std::size_t i = 0; i < value.size(); ++i) add(field.name, i, value[i], field.digested);
      }
    });
  }
  template <class T>
  void add(const char* name, std::size_t index, T value, bool digested = true) {
    if constexpr (std::is_floating_point_v<T>) {
      fields_.push_back({name, index, std::bit_cast<std::uint64_t>(value), digested});
    } else {
      fields_.push_back({name, index, static_cast<std::uint64_t>(value), digested});
    }
  }
  static std::string show(const Field& f) {
    const auto whole = static_cast<std::int64_t>(f.bits);
    if (whole > -(1ll << 60) && whole < (1ll << 60)) return std::to_string(whole);
    return std::to_string(std::bit_cast<double>(f.bits));
  }

  std::vector<Field> fields_;
};

}  // namespace dcqcn::fuzz
