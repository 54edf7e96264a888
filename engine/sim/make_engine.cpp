// The engines of this library by name. Apart from simulation.cpp, so that ns-3 can use a
// Simulation with an engine of its own and link none of these.
#include <cstdlib>
#include <stdexcept>

#include "fluid/fluid_engine.hpp"
#include "sim/event_engine.hpp"
#include "sim/simulation.hpp"
#include "sim/window_engine.hpp"

namespace dcqcn {
namespace {

std::unique_ptr<Engine> make_engine(const std::string& name, const World& world,
                                    std::size_t threads) {
  if (name == "window" || name == "default") {
    return std::make_unique<WindowEngine>(world, threads);
  }
  if (name == "event" && threads == 1) return std::make_unique<EventEngine>(world);
  if (name == "fluid") return std::make_unique<FluidEngine>(world);
  if (name == "event") throw std::invalid_argument("the event engine has one thread");
  if (name.rfind("window:", 0) == 0) {  // with an upper bound on its windows, for tests
    char* end = nullptr;
    const long long bound = std::strtoll(name.c_str() + 7, &end, 10);
    if (*end == 0 && bound > 0) return std::make_unique<WindowEngine>(world, threads, bound, true);
  }
  throw std::invalid_argument("unknown engine '" + name +
                              "'; expected window, window:<picoseconds>, event or fluid");
}

}  // namespace

Simulation::Simulation(const std::string& compiled, std::uint64_t seed, const std::string& engine,
                       std::size_t threads)
    : Simulation(compiled, seed, [engine, threads](const World& world) {
        return make_engine(engine, world, threads);
      }) {}

}  // namespace dcqcn
