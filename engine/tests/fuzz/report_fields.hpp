// Every figure of an interval report as a flat list of named 64-bit values: two reports are the
// same exactly if their lists are, and a digest of the list stands for the report.
//
// tests/digests/engine-fuzz.txt holds digests of the figures that are added with `add`, in this
// order. A figure that a report gains is added with `add_later`: engines are compared in it, the
// recorded digests leave it out and stay valid.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "model/random_stream.hpp"
#include "sim/simulation.hpp"

namespace dcqcn::fuzz {

struct Field {
  const char* name;
  std::size_t index;
  std::uint64_t bits;
  bool digested = true;
};

class Fields {
 public:
  explicit Fields(const IntervalData& data) {
    add("start", 0, data.start);
    add("end", 0, data.end);
    add("active_flows", 0, data.active_flows);
    add_totals(data.log.totals);
    for (std::size_t i = 0; i < data.ports.size(); ++i) add_port(i, data.ports[i]);
    add("finished", 0, data.log.finished.size());
    for (std::size_t i = 0; i < data.log.finished.size(); ++i) add_flow(i, data.log.finished[i]);
    add("rtts", 0, data.log.rtts.size());
    for (std::size_t i = 0; i < data.log.rtts.size(); ++i) add_rtt(i, data.log.rtts[i]);
    add_fsd(data.fsd);
    add_later("interval", 0, data.index);
    add_later("unlimited_flows", 0, data.unlimited_flows);
    for (std::size_t s = 0, at = 0; s < data.schemes.size(); ++s) {
      for (const std::uint64_t n : data.schemes[s].counters) add_later("scheme_counter", at++, n);
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
  void add(const char* name, std::size_t index, std::int64_t value) {
    fields_.push_back({name, index, static_cast<std::uint64_t>(value)});
  }
  void add(const char* name, std::size_t index, std::uint64_t value) {
    fields_.push_back({name, index, value});
  }
  void add(const char* name, std::size_t index, double value) {
    fields_.push_back({name, index, std::bit_cast<std::uint64_t>(value)});
  }
  template <class T>
  void add_later(const char* name, std::size_t index, T value) {
    add(name, index, value);
    fields_.back().digested = false;
  }
  static std::string show(const Field& f) {
    const auto whole = static_cast<std::int64_t>(f.bits);
    if (whole > -(1ll << 60) && whole < (1ll << 60)) return std::to_string(whole);
    return std::to_string(std::bit_cast<double>(f.bits));
  }

  void add_totals(const Totals& t) {
    add("data_packets", 0, t.data_packets);
    add("acks", 0, t.acks);
    add("cnps", 0, t.cnps);
    add("marks", 0, t.marks);
    add("drops", 0, t.drops);
    add("retransmitted", 0, t.retransmitted);
    add("pauses", 0, t.pauses);
    add("resumes", 0, t.resumes);
    add("hops", 0, t.hops);
    add("delivered", 0, t.delivered);
  }
  void add_port(std::size_t i, const PortReport& p) {
    add("tx_bytes", i, p.counters.tx_bytes);
    add("tx_packets", i, p.counters.tx_packets);
    add("marked_packets", i, p.counters.marked_packets);
    add("marked_bytes", i, p.counters.marked_bytes);
    add("max_queue", i, p.counters.max_queue);
    add("dropped", i, p.counters.dropped);
    add("queue", i, p.queue);
    add("pause", i, p.pause);
    add_later("pfc_sent", i, p.counters.pfc_sent);
    add_later("pfc_received", i, p.counters.pfc_received);
  }
  void add_flow(std::size_t i, const FinishedFlow& f) {
    add("flow src", i, static_cast<std::int64_t>(f.src));
    add("flow dst", i, static_cast<std::int64_t>(f.dst));
    add("flow ordinal", i, static_cast<std::uint64_t>(f.ordinal));
    add("flow workload", i, static_cast<std::uint64_t>(f.workload));
    add("flow bytes", i, f.bytes);
    add("flow start", i, f.start);
    add("flow fct", i, f.fct);
    add("flow ideal", i, f.ideal);
  }
  void add_rtt(std::size_t i, const RttSum& r) {
    add("rtt pair", i, r.pair);
    add("rtt base", i, r.base);
    add("rtt sum", i, r.sum);
    add("rtt count", i, r.count);
  }
  void add_fsd(const FsdReport& f) {
    add("elephants", 0, f.elephants);
    add("potential", 0, f.potential);
    add("mice", 0, f.mice);
    add("weighted_elephants", 0, f.weighted_elephants);
    add("weighted_mice", 0, f.weighted_mice);
    for (std::size_t i = 0; i < f.bins.size(); ++i) add("bin", i, f.bins[i]);
    add("kl", 0, f.kl);
    add("triggered", 0, static_cast<std::uint64_t>(f.triggered));
    add("known", 0, static_cast<std::uint64_t>(f.known));
    add("monitor_bytes", 0, f.monitor_bytes);
    add("data_plane_bytes", 0, f.data_plane_bytes);
    add("control_plane_bytes", 0, f.control_plane_bytes);
    add("tracked_flows", 0, f.tracked_flows);
    add("untracked_flows", 0, f.untracked_flows);
  }

  std::vector<Field> fields_;
};

}  // namespace dcqcn::fuzz
