// Looking into a running simulation for time series: changes nothing and closes no interval.
#pragma once

#include "python_surface.hpp"

namespace dcqcn::python {

using PortList = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

inline nb::dict sample_of(const Simulation& sim, const PortList& ports) {
  std::vector<PortSample> samples;
  for (std::size_t i = 0; i < ports.shape(0); ++i) {
    const std::int64_t port = ports.data()[i];
    if (port < 0 || port >= sim.topology().port_count()) {
      throw nb::value_error("sample: a port that does not exist");
    }
    samples.push_back(sim.sample_port(static_cast<int>(port)));
  }
  const std::size_t n = samples.size();
  nb::dict d;
  d["queue_bytes"] = ints(n, [&](std::size_t i) { return samples[i].queue; });
  d["tx_bytes"] = ints(n, [&](std::size_t i) { return samples[i].tx_bytes; });
  d["pause_ps"] = reals(n, [&](std::size_t i) { return samples[i].pause; });
  d["paused"] = array_of<bool>(n, [&](std::size_t i) { return samples[i].paused; });
  return d;
}

inline nb::dict flow_rates_of(const Simulation& sim) {
  struct Row {
    std::int64_t src, dst, ordinal, workload, queue_pair;
    Rate rate;
    Bytes sent;
  };
  std::vector<Row> rows;
  const Qp* last = nullptr;
  sim.transport().for_each_live([&](const Qp& q, const Message& m) {
    if (&q == last) return;  // later messages of the same queue pair
    last = &q;
    rows.push_back({q.src, q.dst, m.ordinal, m.workload, sim.transport().flow_key(q.ref),
                    sim.transport().rate_at(q, sim.now()), q.sent_bytes});
  });
  const std::size_t n = rows.size();
  nb::dict d;
  d["src"] = ints(n, [&](std::size_t i) { return rows[i].src; });
  d["dst"] = ints(n, [&](std::size_t i) { return rows[i].dst; });
  d["ordinal"] = ints(n, [&](std::size_t i) { return rows[i].ordinal; });
  d["workload"] = ints(n, [&](std::size_t i) { return rows[i].workload; });
  d["rate_bps"] = ints(n, [&](std::size_t i) { return rows[i].rate; });
  d["queue_pair"] = ints(n, [&](std::size_t i) { return rows[i].queue_pair; });
  d["sent_bytes"] = ints(n, [&](std::size_t i) { return rows[i].sent; });
  return d;
}

// one dictionary a scheme: its names, and columns of what it traced since the last call
inline nb::list scheme_trace_of(Simulation& sim) {
  nb::list schemes;
  for (const auto& [names, events] : sim.schemes().take_trace()) {
    const std::vector<SchemeEvent>& e = events;
    const std::size_t n = e.size();
    nb::dict d;
    nb::list event_names;
    for (const char* name : names->events) event_names.append(name);
    nb::dict values;
    for (std::size_t v = 0; v < names->values.size(); ++v) {
      values[names->values[v]] = reals(n, [&](std::size_t i) { return e[i].values[v]; });
    }
    d["scheme"] = names->name;
    d["events"] = event_names;
    d["time_ps"] = ints(n, [&](std::size_t i) { return e[i].when; });
    d["src"] = ints(n, [&](std::size_t i) { return e[i].src; });
    d["dst"] = ints(n, [&](std::size_t i) { return e[i].dst; });
    d["event"] = ints(n, [&](std::size_t i) { return e[i].what; });
    d["values"] = values;
    schemes.append(d);
  }
  return schemes;
}

inline void bind_samples(nb::class_<Simulation>& simulation) {
  simulation
      .def(
          "trace_schemes", [](Simulation& s, bool wanted) { s.schemes().trace(wanted); },
          nb::arg("wanted"), "Keep the events of the NICs' schemes from now on, or stop.")
      .def("take_scheme_trace", &scheme_trace_of,
           "By scheme: names, and columns of the events since the last call, by time and source.")
      .def("sample", &sample_of, nb::arg("ports"),
           "Queued bytes and pause state of these ports now; data bytes sent and time paused since "
           "the last report.")
      .def(
          "flow_rates", &flow_rates_of,
          "Every queue pair with unfinished work: its oldest flow, the rate that paces it, and the "
          "bytes that it has put on the wire.");
}

}  // namespace dcqcn::python
