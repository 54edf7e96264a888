#include "model/text/scenario.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>
#include <tuple>

#include "model/schemes/nic_schemes.hpp"
#include "model/text/scenario_lines.hpp"

namespace dcqcn {
namespace {

// kSome: at least one in a complete text
enum class Times : std::uint8_t { kOnce, kSome, kAny };

struct Kind {
  std::string_view word;
  void (*read)(const Line&, Scenario&);
  Times times;
};

constexpr std::array<Kind, 17> kKinds = {{{"nodes", read_nodes, Times::kOnce},
                                          {"switch", read_switch, Times::kAny},
                                          {"link", read_link, Times::kAny},
                                          {"next_hop", read_next_hop, Times::kAny},
                                          {"servers", read_servers, Times::kAny},
                                          {"wire", read_wire, Times::kOnce},
                                          {"pfc", read_pfc, Times::kOnce},
                                          {"class", read_class, Times::kAny},
                                          {"scheme", read_scheme, Times::kSome},
                                          {"transport", read_transport, Times::kOnce},
                                          {"cnp", read_cnp, Times::kOnce},
                                          {"monitor", read_monitor, Times::kOnce},
                                          {"cdf", read_cdf, Times::kAny},
                                          {"workload", read_workload, Times::kAny},
                                          {"flow", read_flow, Times::kAny},
                                          {"graph", read_graph, Times::kAny},
                                          {"node", read_node, Times::kAny}}};

class Parser {
 public:
  void read(const Line& line) {
    for (std::size_t i = 0; i < kKinds.size(); ++i) {
      if (kKinds[i].word != line.word()) continue;
      if (kKinds[i].times == Times::kOnce && seen_[i] > 0) {
        line.fail("a second one; the first is line " + std::to_string(seen_[i]));
      }
      if (line.word() == "switch") note_switch(line);
      kKinds[i].read(line, scenario_);
      if (line.word() == "next_hop") note_next_hop(line);
      seen_[i] = line.number();
      return;
    }
    std::vector<std::string_view> known;
    known.reserve(std::size(kKinds));
    for (const Kind& kind : kKinds) known.push_back(kind.word);
    line.fail("unknown item " + shown(line.word()) + did_you_mean(line.word(), known));
  }

  // `end` is the last line
  Scenario take(const Line& end) {
    expect_lines(end);
    check_degrees(end);
    check_buffers(end);
    check_ack_class(end);
    check_classes(end);
    check_flow_sizes(end);
    take_sizes(end);
    scenario_.pfc.acks_as_data |= scenario_.classes.tcp;  // they can be lost, as its data
    take_jobs();
    // throws if a scheme, an option or a host of one is not there
    static_cast<void>(NicSchemes(scenario_, {}));
    return std::move(scenario_);
  }

 private:
  void take_jobs() {
    for (std::size_t w = 0; w < scenario_.workloads.size(); ++w) {
      WorkloadSpec& spec = scenario_.workloads[w];
      if (spec.pattern != Pattern::kJob) continue;
      try {
        spec.job = spec.graph.empty()
                       ? graph_of(spec.nodes, static_cast<std::uint32_t>(spec.hosts.size()))
                       : JobGraph::read(spec.graph);
      } catch (const std::invalid_argument& error) {
        throw std::invalid_argument("job of workload " + std::to_string(w) + ": " + error.what());
      }
      std::string().swap(spec.graph);  // an assignment would keep the memory
      std::vector<JobLine>().swap(spec.nodes);
    }
  }

  void note_switch(const Line& line) {
    if (line.values().empty()) return;  // is refused below
    for (const auto& [node, number] : switches_) {
      if (node == line.values()[0]) {
        line.fail("a second one for node " + node + "; the first is line " +
                  std::to_string(number));
      }
    }
    switches_.emplace_back(line.values()[0], line.number());
  }

  void note_next_hop(const Line& line) {
    // a listed flow has 16 bits of its own at its destination; half of them stay for the others
    constexpr std::size_t kMostFlows = 32768;
    const NextHopRow& row = scenario_.next_hops.back();
    const auto [at, fresh] =
        next_hops_.try_emplace({row.node, row.src, row.dst, row.ordinal, row.acks}, line.number());
    if (!fresh) line.fail("the same flow and switch as on line " + std::to_string(at->second));
    auto& flows = listed_[row.target()];
    flows.emplace(row.acks ? row.dst : row.src, row.ordinal, row.acks);
    if (flows.size() > kMostFlows) {
      line.fail("more than " + std::to_string(kMostFlows) + " flows to host " +
                std::to_string(row.target()));
    }
  }

  void expect_lines(const Line& end) const {
    for (std::size_t i = 0; i < kKinds.size(); ++i) {
      const bool needed = kKinds[i].word == "nodes" || end.complete();
      if (needed && kKinds[i].times != Times::kAny && seen_[i] == 0) {
        end.fail("no line '" + std::string(kKinds[i].word) + "' before it");
      }
    }
    if (end.complete() && switches_.size() != scenario_.switches.size()) {
      end.fail(std::to_string(switches_.size()) + " lines 'switch' before it; expected " +
               std::to_string(scenario_.switches.size()));
    }
  }

  void check_degrees(const Line& end) {
    degree_.assign(static_cast<std::size_t>(scenario_.nodes()), 0);
    headroom_.assign(degree_.size(), 0);
    for (const LinkSpec& l : scenario_.links) {
      for (const int n : {l.a, l.b}) {
        ++degree_[static_cast<std::size_t>(n)];
        headroom_[static_cast<std::size_t>(n)] += l.headroom;
      }
    }
    for (int h = 0; h < scenario_.hosts; ++h) {
      const int links = degree_[static_cast<std::size_t>(h)];
      if (links != 1) {
        end.fail("host " + std::to_string(h) + " has " + std::to_string(links) +
                 " links; a host has exactly one");
      }
    }
    for (int n = scenario_.hosts; n < scenario_.nodes(); ++n) {
      const int ports = degree_[static_cast<std::size_t>(n)];
      if (ports > kMostPorts) {
        end.fail("switch " + std::to_string(n) + " has " + std::to_string(ports) +
                 " ports; expected at most " + std::to_string(kMostPorts));
      }
    }
  }

  void check_buffers(const Line& end) const {
    if (!scenario_.pfc.enabled) return;
    const int priorities = __builtin_popcount(scenario_.pfc.lossless);
    for (std::size_t s = 0; s < scenario_.switches.size(); ++s) {
      const std::size_t n = s + static_cast<std::size_t>(scenario_.hosts);
      const Bytes need = priorities * (headroom_[n] + degree_[n] * scenario_.pfc.reserve);
      if (need >= scenario_.switches[s].buffer) {
        end.fail("switch " + std::to_string(n) + ": headroom and reserve need " +
                 std::to_string(need) + " B, but the buffer has " +
                 std::to_string(scenario_.switches[s].buffer) + " B");
      }
    }
  }

  // packets of a queue pair are numbered with 32 bits, and which of two is later is told by half
  void check_flow_sizes(const Line& end) const {
    constexpr Bytes kMostPackets = (Bytes{1} << 31) - 1;
    const auto check = [&](Bytes bytes) {
      if (bytes == kUnlimited || (bytes - 1) / scenario_.wire.payload < kMostPackets) return;
      end.fail("a flow of " + std::to_string(bytes) + " bytes, in packets of " +
               std::to_string(scenario_.wire.payload) + ", expected at most " +
               std::to_string(kMostPackets) + " packets, or 'unlimited'");
    };
    for (const WorkloadSpec& w : scenario_.workloads) {
      check(w.bytes);
      check(w.block_max);
      for (const Transfer& t : w.transfers) check(t.bytes);
    }
    for (const Cdf& cdf : scenario_.cdfs) check(static_cast<Bytes>(cdf.back().bytes));
  }

  // a message that is complete at its receiver is not answered again, so its last ACK may not drop
  void check_ack_class(const Line& end) const {
    if (scenario_.pfc.acks_as_data != 0xFF) return;  // those of TCP are answered again
    for (const WorkloadSpec& w : scenario_.workloads) {
      if (!scenario_.pfc.is_lossless(w.priority) && !(scenario_.classes.tcp >> w.priority & 1)) {
        end.fail("ack_class = data needs PFC for the priority of every workload, and priority " +
                 std::to_string(w.priority) + " can lose packets, also ACKs");
      }
    }
    const LinkSpec* link = scenario_.short_of_headroom();
    if (link != nullptr && !scenario_.workloads.empty()) {
      end.fail("ack_class = data needs a headroom of " +
               std::to_string(scenario_.headroom_needed(*link)) + " B for the link " +
               std::to_string(link->a) + " " + std::to_string(link->b) + ", which has " +
               std::to_string(link->headroom) + " B: what comes before a pause acts could drop");
    }
  }

  void check_classes(const Line& end) const {
    for (unsigned p = 0; p < kPriorities; ++p) {
      if ((scenario_.classes.tcp >> p & 1) && scenario_.pfc.is_lossless(p)) {
        end.fail("class " + std::to_string(p) +
                 " has transport = tcp and is lossless; expected one of both");
      }
    }
  }

  // the monitor's distribution, which may stand after its line
  void take_sizes(const Line& end) {
    const int number = scenario_.monitor.sizes_cdf();
    if (number < 0) return;
    const auto cdf = static_cast<std::size_t>(number);
    if (cdf >= scenario_.cdfs.size()) {
      end.fail("sizes_cdf = " + std::to_string(cdf) + " of the monitor; expected one of " +
               std::to_string(scenario_.cdfs.size()) + " cdfs");
    }
    std::vector<SizePoint> sizes;
    for (const CdfPoint& p : scenario_.cdfs[cdf]) sizes.push_back({p.bytes, p.probability});
    scenario_.monitor.set_sizes(std::move(sizes));
  }

  Scenario scenario_;
  std::array<int, kKinds.size()> seen_{};  // the line of the last one; 0: none
  std::vector<std::pair<std::string, int>> switches_;
  std::map<std::tuple<int, int, int, std::uint32_t, bool>, int> next_hops_;  // line of each row
  std::map<int, std::set<std::tuple<int, std::uint32_t, bool>>> listed_;  // what goes to each host
  std::vector<int> degree_;  // of each node, and the headroom of its links
  std::vector<Bytes> headroom_;
};

// the first line; true if the text is complete
bool read_header(const Line& line) {
  const auto& values = line.values();
  const bool known = line.word() == "dcqcn-gym-scenario" && !values.empty() && values[0] == "1" &&
                     values.size() <= 2 && line.pairs().empty();
  if (!known || (values.size() == 2 && values[1] != "complete")) {
    line.fail("expected 'dcqcn-gym-scenario 1' or 'dcqcn-gym-scenario 1 complete'");
  }
  return values.size() == 2;
}

}  // namespace

// The packet that makes the switch pause its peer may need headroom itself. The pause waits for the
// frame on the wire and for pauses of the other priorities, takes its own time there and the delay
// of the link. Until it acts the peer sends, and ends a frame that it has just begun; the last bit
// comes a delay later. A pause of the same priority that still waits is not counted.
Bytes Scenario::headroom_needed(const LinkSpec& link) const {
  const Bytes frame = wire.payload + wire.data_overhead;
  const Bytes ahead = std::max({frame, wire.ack, wire.cnp});
  const Bytes pauses = std::popcount(pfc.lossless) * wire.pfc;
  const Bytes flight = (2 * link.delay + link.ps_per_byte - 1) / link.ps_per_byte;
  return frame + ahead + pauses + flight + frame;
}

const LinkSpec* Scenario::short_of_headroom() const {
  if (!pfc.enabled || pfc.lossless == 0) return nullptr;
  for (const LinkSpec& link : links) {
    const bool at_switch = link.a >= hosts || link.b >= hosts;
    if (at_switch && link.headroom < headroom_needed(link)) return &link;
  }
  return nullptr;
}

bool Scenario::can_lose(unsigned priority) const {
  return !pfc.is_lossless(priority) || short_of_headroom() != nullptr;
}

Scenario Scenario::parse(const std::string& text) {
  std::string row;
  Parser parser;
  std::optional<Line> end;
  bool complete = false;
  std::size_t to = 0;  // a stream would copy the text, in which graphs may be large
  for (std::size_t at = 0, number = 1; at < text.size(); at = to + 1, ++number) {
    to = std::min(text.find('\n', at), text.size());
    row.assign(text, at, to - at);
    const Line line(row, static_cast<int>(number), complete);
    if (number == 1) {
      complete = read_header(line);
    } else if (line.empty()) {
      continue;
    } else if (end) {
      line.fail("comes after 'end', which is line " + std::to_string(end->number()));
    } else if (line.word() == "end") {
      line.expect_values(0, "nothing more");
      line.expect_no_keys();
      end = line;
    } else {
      parser.read(line);
    }
  }
  if (!end) throw std::invalid_argument("compiled scenario: 'end' is missing; the text is cut");
  return parser.take(*end);
}

}  // namespace dcqcn
