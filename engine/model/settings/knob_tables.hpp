// Which schemes there are, and the knob table that each of them brings.
#pragma once

#include <span>
#include <string>

#include "model/settings/knobs.hpp"

namespace dcqcn {

// bytes of the states and fields that a scheme keeps, as this engine holds them
struct SchemeSizes {
  std::size_t sender = 0;      // of a queue pair, without what belongs to a connection
  std::size_t receiver = 0;    // of a queue pair
  std::size_t connection = 0;  // outlives the queue pairs of a pair of hosts
  std::size_t nic = 0;         // of a port
  std::size_t listed = 0;      // of a port, for each queue pair in its list
  std::size_t data_fields = 0;
  std::size_t ack_fields = 0;
  std::size_t cnp_fields = 0;
};

struct SchemeKnobs {
  const char* name;
  std::vector<KnobRow> nic;  // the scheme's own rows, in the order of a NIC's columns
  SchemeSizes sizes;
};

// every scheme of schemes/list.hpp; the first one is the default
std::span<const SchemeKnobs> scheme_knobs();
// throws std::invalid_argument for a name that is none
const SchemeKnobs& scheme_knobs(const std::string& name);
// the rows of a switch port, which every scheme has
std::span<const KnobRow> ecn_knobs();
// rows that a switch port has besides if a scenario turns them
std::span<const KnobRow> pfc_knobs();

}  // namespace dcqcn
