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
  d["job_span_rows"] = ints(n, [&](std::size_t i) { return rows[i].job_spans; });
  d["job_spans"] = rows_of(kJobSpanFields, run.job_spans);
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

// `work` for each of them in threads, without Python's lock; throws what Ctrl-C does
inline void in_threads_of_python(const std::vector<Simulation*>& simulations, std::size_t n,
                                 unsigned threads, const Work& work) {
  const std::unordered_set<Simulation*> different(simulations.begin(), simulations.end());
  if (simulations.size() != n || different.size() != n) {
    throw std::invalid_argument(
        "expected different simulations, and for each of them when it is to stop");
  }
  {
    const nb::gil_scoped_release release;
    in_threads(n, threads, work, signalled);
  }
  if (PyErr_Occurred()) throw nb::python_error();
}

inline nb::list run_batch(const std::vector<Simulation*>& simulations,
                          const std::vector<std::vector<Time>>& stops, unsigned threads) {
  std::vector<BatchRun> runs(stops.size());
  in_threads_of_python(simulations, stops.size(), threads,
                       [&](std::size_t i, const std::atomic<bool>& stop) {
                         runs[i].simulation = simulations[i];
                         runs[i].stops = stops[i];
                         runs[i].go(stop);
                       });
  nb::list list;
  for (const BatchRun& run : runs) list.append(figures_of(run));
  return list;
}

inline void advance_all(const std::vector<Simulation*>& simulations, const std::vector<Time>& until,
                        unsigned threads) {
  in_threads_of_python(simulations, until.size(), threads,
                       [&](std::size_t i, const std::atomic<bool>&) {
                         Simulation& one = *simulations[i];
                         if (one.closed().end >= until[i]) return;  // by a call that was cut short
                         one.advance(until[i]);
                         one.report();  // while what it reads is in this core's caches
                       });
}

inline void bind_batch(nb::module_& m) {
  m.def("run_batch", &run_batch, nb::arg("simulations"), nb::arg("stops_ps"), nb::arg("threads"),
        "Advance every simulation to its stops, or to the end of its traffic, in threads; return "
        "the figures of each: a row per interval, and columns of round trips and finished flows.");
  m.def("advance_all", &advance_all, nb::arg("simulations"), nb::arg("until_ps"),
        nb::arg("threads"),
        "Advance each simulation to its instant and close its interval, in threads.");
}

}  // namespace dcqcn::python
