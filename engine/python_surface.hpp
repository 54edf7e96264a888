// The Python surface of a simulation, whatever engine drives it: shape checks and conversions
// only, no logic. Shared by the modules _core and _ns3.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <span>
#include <vector>

#include "model/settings/knob_tables.hpp"
#include "sim/report_fields.hpp"
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
  for_each_field(kTotalsFields, [&](const auto& field) { d[field.name] = field.get(t); });
  return d;
}

// So many columns in one piece of memory: one array of dimension two, of which Python gets the
// rows.
template <class T>
class Columns {
 public:
  Columns(std::size_t columns, std::size_t rows) : rows_(rows) {
    data_ = new T[columns * rows + 1];
    nb::capsule owner(data_, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    if (columns == 0) return;
    all_ = nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<2>>(data_, {columns, rows}, owner));
  }
  nb::object next(auto&& value_at) {
    T* column = data_ + made_ * rows_;
    for (std::size_t i = 0; i < rows_; ++i) column[i] = static_cast<T>(value_at(i));
    return nb::steal(PySequence_GetItem(all_.ptr(), static_cast<Py_ssize_t>(made_++)));
  }

 private:
  std::size_t rows_;
  std::size_t made_ = 0;
  T* data_;
  nb::object all_;
};

// columns of a report, one for each field; value_of(field) gives the value of row i by (i)
template <class Fields>
void add_columns_of(nb::dict& d, const Fields& fields, std::size_t rows, auto&& value_of) {
  const auto is_real = [&](const auto& field) {
    return std::is_floating_point_v<std::decay_t<decltype(value_of(field)(0))>>;
  };
  std::size_t real = 0;
  for_each_field(fields, [&](const auto& field) { real += is_real(field); });
  Columns<std::int64_t> whole_columns(std::tuple_size_v<Fields> - real, rows);
  Columns<double> real_columns(real, rows);
  for_each_field(fields, [&](const auto& field) {
    const auto value_at = value_of(field);
    const char* name = last_name(field.name);
    if constexpr (std::is_floating_point_v<std::decay_t<decltype(value_at(0))>>) {
      d[name] = real_columns.next(value_at);
    } else {
      d[name] = whole_columns.next(value_at);
    }
  });
}

// a table of a report, a column for each field
template <class Fields, class Row>
void add_columns(nb::dict& d, const Fields& fields, const std::vector<Row>& rows) {
  add_columns_of(d, fields, rows.size(), [&](const auto& field) {
    return [&](std::size_t i) { return field.get(rows[i]); };
  });
}

// the same as rows of whole numbers
template <class Fields, class Row>
nb::object rows_of(const Fields& fields, const std::vector<Row>& rows) {
  constexpr std::size_t kWidth = std::tuple_size_v<Fields>;
  auto* data = new std::int64_t[rows.size() * kWidth];
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<std::int64_t*>(p); });
  std::int64_t* at = data;
  for (const Row& row : rows) {
    for_each_field(fields, [&](const auto& field) { *at++ = field.get(row); });
  }
  return nb::cast(
      nb::ndarray<nb::numpy, std::int64_t, nb::ndim<2>>(data, {rows.size(), kWidth}, owner));
}

inline nb::dict fsd_of(const FsdReport& f) {
  nb::dict d;
  for_each_field(kFsdFields, [&](const auto& field) {
    const auto& value = field.get(f);
    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>) {
      d[last_name(field.name)] = value;
    } else {
      d[last_name(field.name)] = reals(value.size(), [&](std::size_t i) { return value[i]; });
    }
  });
  return d;
}

inline nb::dict closed_report_of(const Simulation& sim) {
  const IntervalData& r = sim.closed();
  const Topology& t = sim.topology();
  nb::dict d = totals_of(r.log.totals);
  for_each_field(kIntervalFields, [&](const auto& field) { d[field.name] = field.get(r); });
  const auto of_ports = [&](const auto& field) { return of_port(field, t, r.ports); };
  add_columns_of(d, kHostFields, static_cast<std::size_t>(t.hosts()), of_ports);
  add_columns_of(d, kPortFields, r.ports.size(), of_ports);
  add_columns(d, kRttFields, r.log.rtts);
  if (const auto own = r.own_counters(); !own.empty()) {
    nb::dict counters;
    for (const std::string_view name : own) {
      counters[nb::str(name.data(), name.size())] = r.counted(name);
    }
    d["scheme_counters"] = counters;
  }
  if (r.unlimited_flows > 0) d["unlimited_flows"] = r.unlimited_flows;
  if (!r.log.job_spans.empty()) {
    d["job_spans"] = rows_of(kJobSpanFields, r.log.job_spans);
  }
  d["fsd"] = fsd_of(r.fsd);
  nb::dict finished;
  add_columns(finished, kFinishedFields, r.log.finished);
  d["finished"] = finished;
  return d;
}

inline nb::dict report_of(Simulation& sim) {
  sim.report();
  return closed_report_of(sim);
}

// The one way in for values of knobs: a device's units outside, SI inside.
inline void put_si(const double* row, std::span<const KnobRow> knobs, double* si) {
  for (std::size_t i = 0; i < knobs.size(); ++i) si[i] = row[i] * knobs[i].unit.si_per_unit;
}

inline void apply(Simulation& sim, const Table& nic, const Table& ecn) {
  const std::size_t marking = ecn_knobs().size();
  const bool with_pfc = ecn.shape(1) == marking + pfc_knobs().size();
  if (ecn.shape(1) != marking && !with_pfc) {
    throw std::invalid_argument("apply: expected " + std::to_string(marking) +
                                " ECN columns, got " + std::to_string(ecn.shape(1)));
  }
  const auto read = with_pfc ? EcnSetting::with_pfc : EcnSetting::from_si;
  std::vector<double> si(ecn.shape(1));
  std::vector<EcnSetting> ecns;
  for (std::size_t i = 0; i < ecn.shape(0); ++i) {
    const double* row = ecn.data() + i * ecn.shape(1);
    put_si(row, ecn_knobs(), si.data());
    if (with_pfc) put_si(row + marking, pfc_knobs(), si.data() + marking);
    ecns.push_back(read(si.data()));
  }
  std::vector<double> nics(nic.shape(0) * nic.shape(1));
  sim.schemes().check_shape(nic.shape(0), nic.shape(1));
  for (std::size_t h = 0; h < nic.shape(0); ++h) {
    const std::size_t at = h * nic.shape(1);
    put_si(nic.data() + at, sim.schemes().of(static_cast<int>(h)).names().knobs, nics.data() + at);
  }
  sim.apply({nics.data(), nic.shape(0), nic.shape(1)}, std::move(ecns));
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

// "int", "float", "bool", or an array of these
template <class T>
const char* kind_of(bool column) {
  if constexpr (std::is_same_v<T, bool>) {
    return "bool";
  } else if constexpr (!std::is_arithmetic_v<T>) {
    return "FloatArray";  // the bins of sizes
  } else if constexpr (std::is_floating_point_v<T>) {
    return column ? "FloatArray" : "float";
  } else {
    return column ? "IntArray" : "int";
  }
}

template <class Row, class Fields>
void list_fields(nb::list& list, const Fields& fields, bool columns) {
  for_each_field(fields, [&](const auto& field) {
    nb::dict d;
    d["name"] = field.name;
    d["unit"] = field.unit;
    d["kind"] = kind_of<std::decay_t<decltype(field.get(std::declval<const Row&>()))>>(columns);
    d["meaning"] = field.meaning;
    d["shown"] = field.shown;
    list.append(d);
  });
}

// the names are the fields of dcqcn_gym's ReportField
inline nb::list report_fields() {
  nb::list list;
  list_fields<IntervalData>(list, kIntervalFields, false);
  list_fields<PortRow>(list, kHostFields, true);
  list_fields<RttSum>(list, kRttFields, true);
  list_fields<PortRow>(list, kPortFields, true);
  list_fields<Totals>(list, kTotalsFields, false);
  list_fields<FsdReport>(list, kFsdFields, false);
  list_fields<FinishedFlow>(list, kFinishedFields, true);
  return list;
}

// everything but the constructor
inline void bind_methods(nb::class_<Simulation>& simulation) {
  simulation
      .def("apply", &apply, nb::arg("nic"), nb::arg("ecn"),
           "Put settings in force, in the units and the order of the knob table: a row per host, a "
           "row per port.")
      .def("advance", &Simulation::advance, nb::arg("until_ps"),
           nb::call_guard<nb::gil_scoped_release>(), "Run everything that happens before until_ps.")
      .def("report", &report_of, "Close the interval since the last report and return its figures.")
      .def("closed_report", &closed_report_of, "The figures of the interval that was closed last.")
      .def_prop_ro("closed_ps", [](const Simulation& s) { return s.closed().end; })
      .def(
          "snapshot",
          [](Simulation& s) {
            const std::string bytes = s.snapshot();
            return nb::bytes(bytes.data(), bytes.size());
          },
          "The state as bytes, for restore() of another one.")
      .def(
          "restore",
          [](Simulation& s, const nb::bytes& bytes) { s.restore({bytes.c_str(), bytes.size()}); },
          nb::arg("snapshot"),
          "Take the state that a simulation of the same scenario, seed and engine was in; only "
          "before anything else is called.")
      .def(
          "fresh",
          [](const Simulation& s, std::uint64_t seed) {
            return std::make_unique<Simulation>(s, seed);
          },
          nb::arg("seed"), "Another one of the same scenario at time 0; both share the network.")
      .def("clone", &Simulation::clone,
           "Another one in this state: both go on with the same bytes, and share the network.")
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
