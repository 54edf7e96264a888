// The nanobind module dcqcn_gym._core: shape checks and conversions only, no logic.
#include <nanobind/nanobind.h>

NB_MODULE(_core, m) { m.attr("ENGINE_VERSION") = 1; }
