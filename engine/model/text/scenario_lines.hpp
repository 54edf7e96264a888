// What the lines of a compiled scenario mean, one function for each kind. Each adds to the
// scenario read so far, and throws std::invalid_argument with the number of the line, what was
// given and what was expected.
#pragma once

#include "model/text/compiled_line.hpp"
#include "model/text/scenario.hpp"

namespace dcqcn {

void read_nodes(const Line& line, Scenario& scenario);
void read_switch(const Line& line, Scenario& scenario);
void read_link(const Line& line, Scenario& scenario);
void read_next_hop(const Line& line, Scenario& scenario);
void read_servers(const Line& line, Scenario& scenario);
void read_wire(const Line& line, Scenario& scenario);
void read_pfc(const Line& line, Scenario& scenario);
void read_class(const Line& line, Scenario& scenario);
void read_scheme(const Line& line, Scenario& scenario);
void read_transport(const Line& line, Scenario& scenario);
void read_cnp(const Line& line, Scenario& scenario);
void read_monitor(const Line& line, Scenario& scenario);
void read_cdf(const Line& line, Scenario& scenario);
void read_workload(const Line& line, Scenario& scenario);
void read_flow(const Line& line, Scenario& scenario);
void read_graph(const Line& line, Scenario& scenario);
void read_node(const Line& line, Scenario& scenario);

/// A node or a host of the scenario, by number.
int node_of(const Line& line, const Scenario& scenario, const Value& value);
int host_of(const Line& line, const Scenario& scenario, const Value& value);

}  // namespace dcqcn
