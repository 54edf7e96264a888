// Lines about jobs of a compiled scenario: servers, and the nodes of a graph that is no file.

#include "model/text/scenario_lines.hpp"

namespace dcqcn {

namespace {

constexpr int kMostEndpoint = 65534;
constexpr int kMostLines = 1'000'000;
constexpr std::int64_t kMostValue = (std::int64_t{1} << 55) - 1;

const Field<Servers> kServers[] = {
    {"gpus", [](Servers& s, const Value& v) { s.gpus = static_cast<int>(v.whole(1, 65535)); },
     Absent::kNever},
    {"rate_bps", [](Servers& s, const Value& v) { s.rate = v.whole(1, 1'000'000'000'000'000); },
     Absent::kNever},
    {"delay_ps", [](Servers& s, const Value& v) { s.delay = v.whole(1, kLongest / 1000); },
     Absent::kNever},
};

const Field<JobLine> kNode[] = {
    {"after", [](JobLine& n, const Value& v) { n.after = v.list(0, kMostLines); }, Absent::kAlways},
    {"connection",
     [](JobLine& n, const Value& v) {
       n.node.connection = static_cast<std::uint16_t>(v.whole(0, 65535));
     },
     Absent::kAlways},
    {"label",
     [](JobLine& n, const Value& v) {
       n.node.label = static_cast<std::uint16_t>(v.whole(0, 65535));
     },
     Absent::kAlways},
    {"begin",
     [](JobLine& n, const Value& v) { n.begin = static_cast<int>(v.whole(0, kMostLines)); },
     Absent::kAlways},
};

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Adler-32 (RFC 1950): other letters are another graph, and nobody would see it
std::uint32_t adler32(std::string_view bytes) {
  std::uint32_t a = 1;
  std::uint32_t b = 0;
  for (const char c : bytes) {
    a = (a + static_cast<unsigned char>(c)) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

WorkloadSpec& job_before(const Line& line, Scenario& scenario) {
  if (scenario.workloads.empty() || scenario.workloads.back().pattern != Pattern::kJob) {
    line.fail("a graph must follow 'workload job'");
  }
  return scenario.workloads.back();
}

}  // namespace

void read_servers(const Line& line, Scenario& scenario) {
  line.expect_values(0, "keys only");
  read_keys<Servers>(line, kServers, scenario.servers);
}

void read_graph(const Line& line, Scenario& scenario) {
  line.expect_values(2, "bytes of a job graph in base64, and their Adler-32");
  line.expect_no_keys();
  std::string& bytes = job_before(line, scenario).graph;
  const std::size_t before = bytes.size();
  std::uint32_t bits = 0;
  int have = 0;
  for (const char c : line.values()[0]) {
    const auto digit = kDigits.find(c);
    if (digit == std::string_view::npos) line.fail("has " + shown({&c, 1}) + "; expected base64");
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    have += 6;
    if (have < 8) continue;
    have -= 8;
    bytes += static_cast<char>(bits >> have & 0xFF);
  }
  const std::uint32_t found = adler32(std::string_view(bytes).substr(before));
  const std::int64_t given = Value(line, "Adler-32", line.values()[1]).whole(0, 0xFFFF'FFFF);
  if (given != found) {
    line.fail("has bytes whose Adler-32 is " + std::to_string(found) + "; expected " +
              std::to_string(given));
  }
}

void read_node(const Line& line, Scenario& scenario) {
  line.expect_values(4, "kind, src, dst and bytes, picoseconds or repetitions");
  const auto& values = line.values();
  JobLine node;
  read_keys<JobLine>(line, kNode, node);
  node.node.kind = static_cast<unsigned>(Value(line, "kind", values[0])
                                             .choice<JobKind>({{"transfer", JobKind::kTransfer},
                                                               {"local", JobKind::kLocal},
                                                               {"delay", JobKind::kDelay},
                                                               {"join", JobKind::kJoin},
                                                               {"repeat", JobKind::kRepeat}})) &
                   7u;
  node.node.src = static_cast<std::uint16_t>(Value(line, "src", values[1]).whole(0, kMostEndpoint));
  node.node.dst = static_cast<std::uint16_t>(Value(line, "dst", values[2]).whole(0, kMostEndpoint));
  node.node.value =
      static_cast<std::uint64_t>(Value(line, "value", values[3]).whole(0, kMostValue)) &
      static_cast<std::uint64_t>(kMostValue);
  job_before(line, scenario).nodes.push_back(std::move(node));
}

}  // namespace dcqcn
