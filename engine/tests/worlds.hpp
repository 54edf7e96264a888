// Small compiled scenarios for the tests.
#pragma once

#include <string>

#include "model/text/scenario.hpp"

namespace dcqcn::worlds {

inline const std::string kHpccWire =
    "wire payload=1000 data=48 ack=60 cnp=60 pfc=43 cnp_in_ack=1\n";
inline const std::string kPfc =
    "pfc enabled=1 lossless=3 alpha=0.125 reserve=4096 resume_offset=3072\n";

// hosts on one switch, 100 Gb/s and 5 us unless told otherwise; `rest` follows the links
inline std::string one_switch(int hosts, const std::string& rest, long ps_per_byte = 80,
                              long delay = 5'000'000, long headroom = 187'500) {
  const std::string n = std::to_string(hosts);
  std::string text = "dcqcn-gym-scenario 1\nnodes hosts=" + n + " switches=1\nswitch " + n +
                     " tier=0 buffer=12582912 salt=1\n";
  for (int h = 0; h < hosts; ++h) {
    text += "link " + std::to_string(h) + " " + n + " ps_per_byte=" + std::to_string(ps_per_byte) +
            " delay_ps=" + std::to_string(delay) + " headroom=" + std::to_string(headroom) + "\n";
  }
  return text + rest + "end\n";
}

}  // namespace dcqcn::worlds
