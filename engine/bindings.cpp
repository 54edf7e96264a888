// The nanobind module dcqcn_gym._core.
#include "batch_surface.hpp"
#include "knob_surface.hpp"
#include "monitor_surface.hpp"
#include "python_surface.hpp"
#include "trace_surface.hpp"

namespace nb = nanobind;
using namespace nb::literals;

NB_MODULE(_core, m) {
  using dcqcn::Simulation;
  m.doc() = "The native packet engine.";
  m.def(
      "engine_digest", [] { return DCQCN_ENGINE_DIGEST; },  // by CMakeLists.txt
      "SHA-256 of the engine's sources: of what sha256sum prints for them, sorted by name.");
  dcqcn::python::bind_knobs(m);
  nb::class_<Simulation> simulation(m, "Simulation",
                                    "One network: built from a compiled scenario and a seed.");
  simulation.def(nb::init<const std::string&, std::uint64_t, const std::string&, std::size_t>(),
                 "compiled"_a, "seed"_a, "engine"_a = "default", "threads"_a = 1);
  dcqcn::python::bind_methods(simulation);
  dcqcn::python::bind_samples(simulation);
  dcqcn::python::bind_monitors(m);
  dcqcn::python::bind_batch(m);
  m.def(
      "report_fields", &dcqcn::python::report_fields,
      "The figures of an interval report: names, units, kinds, meanings and where they are shown.");
  m.def(
      "same_scenario",
      [](const std::string& a, const std::string& b) {
        return dcqcn::Scenario::parse(a) == dcqcn::Scenario::parse(b);
      },
      "a"_a, "b"_a, "Whether two compiled scenarios mean the same network, devices and traffic.");
}
