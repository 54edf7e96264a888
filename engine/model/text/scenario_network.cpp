// Lines about the network of a compiled scenario: nodes, switch, link.
#include "model/text/scenario_lines.hpp"

namespace dcqcn {

namespace {

constexpr int kMostHosts = 65'536;  // a packet's destination has 16 bits
constexpr int kMostSwitches = 1'000'000;

struct NodeCounts {
  int hosts = 0;
  int switches = 0;
};

const Field<NodeCounts> kNodes[] = {
    {"hosts",
     [](NodeCounts& n, const Value& v) { n.hosts = static_cast<int>(v.whole(2, kMostHosts)); },
     Absent::kNever},
    {"switches",
     [](NodeCounts& n, const Value& v) {
       n.switches = static_cast<int>(v.whole(0, kMostSwitches));
     },
     Absent::kNever},
};

const Field<SwitchSpec> kSwitch[] = {
    {"tier", [](SwitchSpec& s, const Value& v) { s.tier = static_cast<int>(v.whole(0, 255)); }},
    {"buffer", [](SwitchSpec& s, const Value& v) { s.buffer = v.whole(0, kMostBytes); }},
    {"salt", [](SwitchSpec& s,
                const Value& v) { s.salt = static_cast<std::uint32_t>(v.whole(0, 0xFFFFFFFF)); }},
};

const Field<LinkSpec> kLink[] = {
    {"ps_per_byte", [](LinkSpec& l, const Value& v) { l.ps_per_byte = v.whole(1, 1'000'000'000); }},
    {"delay_ps", [](LinkSpec& l, const Value& v) { l.delay = v.whole(1, kLongest / 1000); }},
    {"headroom", [](LinkSpec& l, const Value& v) { l.headroom = v.whole(0, kMostBytes); }},
};

const Field<NextHopRow> kNextHop[] = {
    {"packets",
     [](NextHopRow& row, const Value& v) {
       row.acks = v.choice<bool>({{"data", false}, {"acks", true}});
     },
     Absent::kAlways},
};

constexpr std::int64_t kMostOrdinal = 4'294'967'295;

int number_of(const Line& line, const Value& value, const char* what, const char* plural,
              int count) {
  if (count == 0) line.fail("expected the line 'nodes' before it");
  const std::int64_t n = value.whole(0, kLongest);
  if (n >= count) {
    line.fail(std::string(what) + " " + std::to_string(n) + " does not exist; " + plural +
              " are 0 to " + std::to_string(count - 1));
  }
  return static_cast<int>(n);
}

}  // namespace

int node_of(const Line& line, const Scenario& scenario, const Value& value) {
  return number_of(line, value, "node", "nodes", scenario.nodes());
}

int host_of(const Line& line, const Scenario& scenario, const Value& value) {
  return number_of(line, value, "host", "hosts", scenario.hosts);
}

void read_nodes(const Line& line, Scenario& scenario) {
  line.expect_values(0, "keys only");
  NodeCounts counts;
  read_keys<NodeCounts>(line, kNodes, counts);
  scenario.hosts = counts.hosts;
  for (int n = 0; n < counts.switches; ++n) {
    SwitchSpec fresh;
    fresh.salt = static_cast<std::uint32_t>(n);
    scenario.switches.push_back(fresh);
  }
}

void read_switch(const Line& line, Scenario& scenario) {
  line.expect_values(1, "the number of one node");
  const int node = node_of(line, scenario, Value(line, "node", line.values()[0]));
  if (node < scenario.hosts) line.fail("node " + std::to_string(node) + " is a host");
  read_keys<SwitchSpec>(line, kSwitch,
                        scenario.switches[static_cast<std::size_t>(node - scenario.hosts)]);
}

void read_link(const Line& line, Scenario& scenario) {
  line.expect_values(2, "the numbers of two nodes");
  LinkSpec link;
  link.a = node_of(line, scenario, Value(line, "node", line.values()[0]));
  link.b = node_of(line, scenario, Value(line, "node", line.values()[1]));
  if (link.a == link.b) line.fail("a link joins two different nodes");
  read_keys<LinkSpec>(line, kLink, link);
  scenario.links.push_back(link);
}

void read_next_hop(const Line& line, Scenario& scenario) {
  line.expect_values(5, "switch, src, dst, ordinal and port");
  const auto& values = line.values();
  NextHopRow row;
  read_keys<NextHopRow>(line, kNextHop, row);
  row.line = line.number();
  row.node = node_of(line, scenario, Value(line, "switch", values[0]));
  if (row.node < scenario.hosts) line.fail("node " + std::to_string(row.node) + " is a host");
  row.src = host_of(line, scenario, Value(line, "src", values[1]));
  row.dst = host_of(line, scenario, Value(line, "dst", values[2]));
  row.ordinal =
      static_cast<std::uint32_t>(Value(line, "ordinal", values[3]).whole(0, kMostOrdinal));
  row.port = static_cast<int>(Value(line, "port", values[4]).whole(0, 65535));
  if (row.src == row.dst) line.fail("host " + std::to_string(row.src) + " sends to itself");
  scenario.next_hops.push_back(row);
}

}  // namespace dcqcn
