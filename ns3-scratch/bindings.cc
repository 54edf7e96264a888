// SPDX-License-Identifier: GPL-2.0-only
// The nanobind module dcqcn_gym._ns3: the surface of dcqcn_gym._core over ns-3.
#include "ns3-engine.h"
#include "python_surface.hpp"
#include "sim/simulation.hpp"
#include "trace_surface.hpp"

namespace nb = nanobind;
using namespace nb::literals;

NB_MODULE(_ns3, m) {
  using ::dcqcn::Simulation;
  // before any Time is used
  ns3::Time::SetResolution(ns3::Time::PS);
  m.doc() = "The network on ns-3.";
  nb::class_<Simulation> simulation(
      m, "Simulation", "The one network of this process: a compiled scenario and a seed.");
  simulation.def(
      "__init__",
      [](Simulation* self, const std::string& compiled, std::uint64_t seed) {
        new (self) Simulation(compiled, seed, [](const ::dcqcn::World& world) {
          return std::make_unique<ns3::Ns3Engine>(world);
        });
      },
      "compiled"_a, "seed"_a);
  simulation.def(
      "enable_pcap",
      [](Simulation& self, const std::string& prefix) {
        static_cast<ns3::Ns3Engine&>(self.engine()).EnablePcap(prefix);
      },
      "prefix"_a, "Capture every frame of every port to PREFIX-NODE-PORT.pcap.");
  ::dcqcn::python::bind_methods(simulation);
  ::dcqcn::python::bind_samples(simulation);
}
