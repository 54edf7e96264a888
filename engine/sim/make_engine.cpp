// The engines of this library by name. Apart from simulation.cpp, so that ns-3 can use a
// Simulation with an engine of its own and link none of these.
#include <stdexcept>

#include "sim/event_engine.hpp"
#include "sim/window_engine.hpp"
#include "sim/simulation.hpp"

namespace dcqcn {
namespace {

std::unique_ptr<Engine> make_engine(const std::string& name, const World& world) {
  if (name == "window" || name == "default") {
    return std::make_unique<WindowEngine>(world);
  }
  if (name == "event") return std::make_unique<EventEngine>(world);
  throw std::invalid_argument("unknown engine '" + name + "'; expected window or event");
}

}  // namespace

Simulation::Simulation(const std::string& compiled, std::uint64_t seed, const std::string& engine)
    : Simulation(compiled, seed, [&](const World& world) { return make_engine(engine, world); }) {}

}  // namespace dcqcn
