// Monitors alone in Python, to be fed with the packets of a trace: several of them can then be
// compared on the very same traffic. No logic but shape checks and conversions.
#pragma once

#include <string>

#include "model/text/scenario.hpp"
#include "python_surface.hpp"

namespace dcqcn::python {

template <class T>
using Column = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// the monitor of a compiled scenario
inline Monitor monitor_of(const std::string& compiled, std::uint64_t seed) {
  const Scenario s = Scenario::parse(compiled);
  return Monitor(s.monitor, static_cast<int>(s.switches.size()), seed);
}

inline void record(Monitor& monitor, const Column<std::uint16_t>& tor,
                   const Column<std::uint32_t>& key, const Column<std::uint16_t>& payload_bytes) {
  const std::size_t n = tor.shape(0);
  if (key.shape(0) != n || payload_bytes.shape(0) != n) {
    throw nb::value_error("record: expected columns of one length");
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (tor.data()[i] >= monitor.switches() || key.data()[i] == 0) {
      throw nb::value_error("record: a ToR or key is out of range");
    }
  }
  if (!monitor.wants_packets()) return;
  for (std::size_t i = 0; i < n; ++i) {
    monitor.record(tor.data()[i], key.data()[i], payload_bytes.data()[i]);
  }
}

inline nb::object flow_keys(const Column<std::int64_t>& src, const Column<std::int64_t>& ordinal) {
  if (src.shape(0) != ordinal.shape(0)) {
    throw nb::value_error("flow_keys: expected columns of one length");
  }
  return ints(src.shape(0), [&](std::size_t i) {
    return flow_key_of(static_cast<std::uint32_t>(src.data()[i]),
                       static_cast<std::uint32_t>(ordinal.data()[i]));
  });
}

inline nb::tuple kl_of(KlTrigger& trigger, double elephants, double mice, bool known) {
  FsdReport report;
  report.weighted_elephants = elephants;
  report.weighted_mice = mice;
  report.known = known;
  trigger.update(report);
  return nb::make_tuple(report.kl, report.triggered);
}

inline void bind_monitors(nb::module_& m) {
  nb::class_<Monitor>(m, "Monitor", "The flow-size monitor of a compiled scenario, alone.")
      .def(
          "__init__",
          [](Monitor* self, const std::string& compiled, std::uint64_t seed) {
            new (self) Monitor(monitor_of(compiled, seed));
          },
          nb::arg("compiled"), nb::arg("seed"))
      .def("record", &record, nb::arg("tor"), nb::arg("key"), nb::arg("payload_bytes"),
           "Count data packets, as Simulation.take_trace returns them.")
      .def(
          "end_interval",
          [](Monitor& self, Time now) {
            FsdReport report;
            self.end_interval(now, report);
            return fsd_of(report);
          },
          nb::arg("now_ps"), "End the interval at now_ps; return its distribution and cost.")
      .def(
          "labels", [](const Monitor& self) { return labels_of(self.labels()); },
          "With option labels=1: every flow active in the last interval.")
      .def("flow_log", &flow_log_of,
           "With kind flow-log: what each ToR saw of each flow in the last interval.");
  nb::class_<KlTrigger>(m, "KlTrigger",
                        "The trigger at the controller: compares successive distributions.")
      .def(nb::init<double>(), nb::arg("theta"))
      .def("update", &kl_of, nb::arg("elephants"), nb::arg("mice"), nb::arg("known"),
           "Take the weighted counts of an interval; return its divergence, and whether it "
           "triggers.");
  nb::dict kinds;
  for (const MonitorKind& kind : monitor_kinds()) {
    nb::list keys;
    for (const std::string& key : kind.keys) keys.append(key);
    kinds[kind.name.c_str()] = nb::tuple(keys);
  }
  m.attr("MONITOR_KINDS") = kinds;
  m.def("flow_keys", &flow_keys, nb::arg("src"), nb::arg("ordinal"),
        "What monitors know flows by, from their source and its running number.");
}

}  // namespace dcqcn::python
