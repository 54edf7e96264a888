// The Python surface of a simulation, whatever engine drives it: shape checks and conversions
// only, no logic. Shared by the modules _core and _ns3.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include "model/knob_tables.hpp"
#include "sim/simulation.hpp"

namespace dcqcn::python {

namespace nb = nanobind;

using Table = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T>
inline nb::object array_of(std::size_t n, auto&& value_at) {
  T* data = new T[n > 0 ? n : 1];
  for (std::size_t i = 0; i < n; ++i) data[i] = static_cast<T>(value_at(i));
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {n}, owner));
}

inline nb::object ints(std::size_t n, auto&& value_at) {
  return array_of<std::int64_t>(n, value_at);
}
inline nb::object reals(std::size_t n, auto&& value_at) { return array_of<double>(n, value_at); }

inline nb::dict totals_of(const Totals& t) {
  nb::dict d;
  d["delivered_bytes"] = t.delivered;
  d["data_packets"] = t.data_packets;
  d["acks"] = t.acks;
  d["cnps"] = t.cnps;
  d["marks"] = t.marks;
  d["drops"] = t.drops;
  d["retransmitted_packets"] = t.retransmitted;
  d["pauses"] = t.pauses;
  d["resumes"] = t.resumes;
  d["packet_hops"] = t.hops;
  return d;
}

inline nb::dict finished_of(const std::vector<FinishedFlow>& f) {
  nb::dict d;
  const std::size_t n = f.size();
  d["src"] = ints(n, [&](std::size_t i) { return f[i].src; });
  d["dst"] = ints(n, [&](std::size_t i) { return f[i].dst; });
  d["ordinal"] = ints(n, [&](std::size_t i) { return f[i].ordinal; });
  d["bytes"] = ints(n, [&](std::size_t i) { return f[i].bytes; });
  d["start_ps"] = ints(n, [&](std::size_t i) { return f[i].start; });
  d["fct_ps"] = ints(n, [&](std::size_t i) { return f[i].fct; });
  d["ideal_fct_ps"] = ints(n, [&](std::size_t i) { return f[i].ideal; });
  d["workload"] = ints(n, [&](std::size_t i) { return f[i].workload; });
  return d;
}

inline nb::dict fsd_of(const FsdReport& f) {
  nb::dict d;
  d["elephants"] = f.elephants;
  d["potential"] = f.potential;
  d["mice"] = f.mice;
  d["weighted_elephants"] = f.weighted_elephants;
  d["weighted_mice"] = f.weighted_mice;
  d["bins"] = reals(16, [&](std::size_t i) { return f.bins[i]; });
  d["kl"] = f.kl;
  d["triggered"] = f.triggered;
  d["monitor_bytes"] = f.monitor_bytes;
  d["known"] = f.known;
  d["data_plane_bytes"] = f.data_plane_bytes;
  d["control_plane_bytes"] = f.control_plane_bytes;
  d["tracked_flows"] = f.tracked_flows;
  d["untracked_flows"] = f.untracked_flows;
  return d;
}

inline nb::dict report_of(Simulation& sim) {
  const IntervalData& r = sim.report();
  const Topology& t = sim.topology();
  const auto& p = r.ports;
  const auto& rtt = r.log.rtts;
  const std::size_t hosts = static_cast<std::size_t>(t.hosts());
  const auto rate = [&](std::size_t i) {
    return 8e12 / static_cast<double>(t.port(static_cast<int>(i)).ps_per_byte);
  };
  nb::dict d = totals_of(r.log.totals);
  d["start_ps"] = r.start;
  d["end_ps"] = r.end;
  d["host_tx_bytes"] = ints(hosts, [&](std::size_t i) { return p[i].counters.tx_bytes; });
  d["host_rate_bps"] = reals(hosts, rate);
  d["rtt_src"] = ints(rtt.size(), [&](std::size_t i) { return rtt[i].pair >> 32; });
  d["rtt_dst"] = ints(rtt.size(), [&](std::size_t i) { return rtt[i].pair & 0xFFFFFFFFu; });
  d["rtt_count"] = ints(rtt.size(), [&](std::size_t i) { return rtt[i].count; });
  d["rtt_sum_ps"] = ints(rtt.size(), [&](std::size_t i) { return rtt[i].sum; });
  d["rtt_base_ps"] = ints(rtt.size(), [&](std::size_t i) { return rtt[i].base; });
  const auto port_ints = [&](auto&& get) {
    return ints(p.size(), [&](std::size_t i) { return get(p[i]); });
  };
  d["port_node"] = ints(p.size(), [&](std::size_t i) { return t.port(static_cast<int>(i)).node; });
  d["port_rate_bps"] = reals(p.size(), rate);
  d["port_pause_ps"] = reals(p.size(), [&](std::size_t i) { return p[i].pause; });
  d["port_tx_bytes"] = port_ints([](const PortReport& x) { return x.counters.tx_bytes; });
  d["port_tx_packets"] = port_ints([](const PortReport& x) { return x.counters.tx_packets; });
  d["port_marked_packets"] =
      port_ints([](const PortReport& x) { return x.counters.marked_packets; });
  d["port_marked_bytes"] = port_ints([](const PortReport& x) { return x.counters.marked_bytes; });
  d["port_queue_bytes"] = port_ints([](const PortReport& x) { return x.queue; });
  d["port_max_queue_bytes"] = port_ints([](const PortReport& x) { return x.counters.max_queue; });
  d["port_dropped_packets"] = port_ints([](const PortReport& x) { return x.counters.dropped; });
  d["port_pfc_sent"] = port_ints([](const PortReport& x) { return x.counters.pfc_sent; });
  d["port_pfc_received"] = port_ints([](const PortReport& x) { return x.counters.pfc_received; });
  d["rate_cuts"] = r.counted("cuts");
  d["rate_increases"] = r.counted("increases");
  if (const auto own = r.own_counters(); !own.empty()) {
    nb::dict counters;
    for (const std::string_view name : own) {
      counters[nb::str(name.data(), name.size())] = r.counted(name);
    }
    d["scheme_counters"] = counters;
  }
  d["active_flows"] = r.active_flows;
  if (r.unlimited_flows > 0) d["unlimited_flows"] = r.unlimited_flows;
  d["fsd"] = fsd_of(r.fsd);
  d["finished"] = finished_of(r.log.finished);
  return d;
}

inline void apply(Simulation& sim, const Table& nic, const Table& ecn) {
  const std::size_t marking = ecn_knobs().size();
  const bool with_pfc = ecn.shape(1) == marking + pfc_knobs().size();
  if (ecn.shape(1) != marking && !with_pfc) {
    throw std::invalid_argument("apply: expected " + std::to_string(marking) +
                                " ECN columns, got " + std::to_string(ecn.shape(1)));
  }
  const auto read = with_pfc ? EcnSetting::with_pfc : EcnSetting::from_si;
  std::vector<EcnSetting> ecns;
  for (std::size_t i = 0; i < ecn.shape(0); ++i)
    ecns.push_back(read(ecn.data() + i * ecn.shape(1)));
  sim.apply({nic.data(), nic.shape(0), nic.shape(1)}, std::move(ecns));
}

inline nb::dict port_table(const Simulation& sim) {
  const Topology& t = sim.topology();
  const std::size_t n = static_cast<std::size_t>(t.port_count());
  nb::dict d;
  d["node"] = ints(n, [&](std::size_t i) { return t.port(static_cast<int>(i)).node; });
  d["peer"] = ints(n, [&](std::size_t i) { return t.peer_node(static_cast<int>(i)); });
  d["index"] = ints(n, [&](std::size_t i) { return t.port(static_cast<int>(i)).index; });
  d["rate_bps"] = reals(n, [&](std::size_t i) {
    return 8e12 / static_cast<double>(t.port(static_cast<int>(i)).ps_per_byte);
  });
  return d;
}

inline nb::dict labels_of(const std::vector<FlowLabel>& labels) {
  nb::dict d;
  const std::size_t n = labels.size();
  d["key"] = ints(n, [&](std::size_t i) { return labels[i].key; });
  d["tor"] = ints(n, [&](std::size_t i) { return labels[i].tor; });
  d["interval_bytes"] = ints(n, [&](std::size_t i) { return labels[i].interval_bytes; });
  d["total_bytes"] = ints(n, [&](std::size_t i) { return labels[i].total_bytes; });
  d["seen_bytes"] = ints(n, [&](std::size_t i) { return labels[i].seen_bytes; });
  d["state"] = ints(n, [&](std::size_t i) { return static_cast<std::int64_t>(labels[i].state); });
  d["elephant_share"] = reals(n, [&](std::size_t i) { return labels[i].elephant_share; });
  return d;
}

inline nb::dict flow_log_of(const Monitor& monitor) {
  const Monitor::FlowLogRows& rows = monitor.flow_log();
  nb::dict d;
  const std::size_t n = rows.size();
  d["tor"] = ints(n, [&](std::size_t i) { return rows[i].tor; });
  d["key"] = ints(n, [&](std::size_t i) { return rows[i].key; });
  d["payload_bytes"] = ints(n, [&](std::size_t i) { return rows[i].payload_bytes; });
  d["packets"] = ints(n, [&](std::size_t i) { return rows[i].packets; });
  return d;
}

inline nb::dict trace_of(const std::vector<TracedPacket>& trace) {
  nb::dict d;
  const std::size_t n = trace.size();
  d["tor"] = array_of<std::uint16_t>(n, [&](std::size_t i) { return trace[i].tor; });
  d["key"] = array_of<std::uint32_t>(n, [&](std::size_t i) { return trace[i].key; });
  d["payload_bytes"] =
      array_of<std::uint16_t>(n, [&](std::size_t i) { return trace[i].payload_bytes; });
  return d;
}

inline nb::dict live_flows_of(const TransportLayer& transport) {
  constexpr std::array kNames{"src",      "dst",          "ordinal", "bytes",
                              "start_ps", "ideal_fct_ps", "workload"};
  std::vector<std::array<std::int64_t, kNames.size()>> rows;
  transport.for_each_live([&](const Qp& q, const Message& m) {
    if (m.bytes == kUnlimited) return;
    rows.push_back({q.src, q.dst, m.ordinal, m.bytes, m.start, m.ideal, m.workload});
  });
  nb::dict d;
  for (std::size_t k = 0; k < kNames.size(); ++k) {
    d[kNames[k]] = ints(rows.size(), [&](std::size_t i) { return rows[i][k]; });
  }
  return d;
}

// everything but the constructor
inline void bind_methods(nb::class_<Simulation>& simulation) {
  simulation
      .def("apply", &apply, nb::arg("nic"), nb::arg("ecn"),
           "Put settings in force, in SI units and the order of the knob table: a row per host, a "
           "row "
           "per port.")
      .def("advance", &Simulation::advance, nb::arg("until_ps"),
           nb::call_guard<nb::gil_scoped_release>(), "Run everything that happens before until_ps.")
      .def("report", &report_of, "Close the interval since the last report and return its figures.")
      .def("port_table", &port_table, "Node, peer node, index and rate of every egress port.")
      .def(
          "totals", [](const Simulation& s) { return totals_of(s.totals()); },
          "Sums over all closed intervals.")
      .def(
          "labels", [](Simulation& s) { return labels_of(s.monitor().labels()); },
          "With monitor option labels=1: every active flow, as it was and as the monitor saw it.")
      .def(
          "take_trace", [](Simulation& s) { return trace_of(s.monitor().take_trace()); },
          "With monitor option trace=1: data packets that ToRs recorded since the last call.")
      .def(
          "flow_log", [](Simulation& s) { return flow_log_of(s.monitor()); },
          "With monitor kind flow-log: what each ToR saw of each flow in the last interval.")
      .def(
          "live_flows", [](const Simulation& s) { return live_flows_of(s.transport()); },
          "Flows that have not finished but will: sizes, starts, ideal completion times, "
          "generators.")
      .def_prop_ro("now_ps", &Simulation::now)
      .def_prop_ro("done", &Simulation::done)
      .def_prop_ro("n_hosts", [](const Simulation& s) { return s.topology().hosts(); })
      .def_prop_ro("n_nodes", [](const Simulation& s) { return s.topology().nodes(); })
      .def_prop_ro("n_ports", [](const Simulation& s) { return s.topology().port_count(); });
}

}  // namespace dcqcn::python
