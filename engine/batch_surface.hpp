// Many simulations in one call from Python: checks and conversions only.
#pragma once

#include <nanobind/stl/vector.h>

#include <unordered_set>

#include "python_surface.hpp"
#include "sim/batch.hpp"

namespace dcqcn::python {

// an array of two dimensions that owns a copy of the values
template <class T>
nb::object matrix_of(std::size_t rows, const std::vector<T>& values) {
  const std::size_t columns = rows > 0 ? values.size() / rows : 0;
  T* data = new T[values.empty() ? 1 : values.size()];
  std::copy(values.begin(), values.end(), data);
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<2>>(data, {rows, columns}, owner));
}

inline nb::dict figures_of(const BatchRun& run) {
  const std::vector<BatchInterval>& rows = run.intervals;
  const std::size_t n = rows.size();
  nb::dict d;
  d["start_ps"] = ints(n, [&](std::size_t i) { return rows[i].start; });
  d["end_ps"] = ints(n, [&](std::size_t i) { return rows[i].end; });
  d["active_flows"] = ints(n, [&](std::size_t i) { return rows[i].active_flows; });
  d["unlimited_flows"] = ints(n, [&](std::size_t i) { return rows[i].unlimited_flows; });
  d["rtt_rows"] = ints(n, [&](std::size_t i) { return rows[i].rtts; });
  d["finished_rows"] = ints(n, [&](std::size_t i) { return rows[i].finished; });
  for_each_field(kTotalsFields, [&](const auto& field) {
    d[field.name] = ints(n, [&](std::size_t i) { return field.get(rows[i].totals); });
  });
  d["host_tx_bytes"] = matrix_of(n, run.host_tx);
  d["port_pause_ps"] = matrix_of(n, run.pauses);
  for_each_field(kRttFields, [&](const auto& field) {
    d[field.name] = ints(run.rtts.size(), [&](std::size_t i) { return field.get(run.rtts[i]); });
  });
  nb::dict finished;
  add_columns(finished, kFinishedFields, run.finished);
  d["finished"] = finished;
  return d;
}

inline bool signalled() {
  const nb::gil_scoped_acquire gil;
  return PyErr_CheckSignals() != 0;
}

inline nb::list run_all(const std::vector<Simulation*>& simulations,
                        const std::vector<std::vector<Time>>& stops, unsigned threads) {
  const std::unordered_set<Simulation*> different(simulations.begin(), simulations.end());
  if (simulations.size() != stops.size() || different.size() != stops.size()) {
    throw std::invalid_argument(
        "run_batch: expected different simulations and a list of stops for each");
  }
  std::vector<BatchRun> runs(simulations.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i].simulation = simulations[i];
    runs[i].stops = stops[i];
  }
  {
    const nb::gil_scoped_release release;
    run_batch(runs, threads, signalled);
  }
  if (PyErr_Occurred()) throw nb::python_error();
  nb::list list;
  for (const BatchRun& run : runs) list.append(figures_of(run));
  return list;
}

inline void bind_batch(nb::module_& m) {
  m.def("run_batch", &run_all, nb::arg("simulations"), nb::arg("stops_ps"), nb::arg("threads"),
        "Advance every simulation to its stops, or to the end of its traffic, in threads; return "
        "the figures of each: a row per interval, and columns of round trips and finished flows.");
}

}  // namespace dcqcn::python
