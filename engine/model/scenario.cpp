#include "model/scenario.hpp"

#include <cstdlib>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string_view>

namespace dcqcn {
namespace {

// one line of the file: a word, positional values, then key=value pairs
class Line {
 public:
  Line(const std::string& text, int number) : number_(number) {
    std::istringstream in(text.substr(0, text.find('#')));
    in >> word_;
    std::string item;
    while (in >> item) {
      const auto eq = item.find('=');
      if (eq == std::string::npos) {
        values_.push_back(item);
      } else {
        pairs_.emplace_back(item.substr(0, eq), item.substr(eq + 1));
      }
    }
  }

  const std::string& word() const { return word_; }
  int number() const { return number_; }
  const std::vector<std::string>& values() const { return values_; }
  const auto& pairs() const { return pairs_; }

  [[noreturn]] void fail(const std::string& why) const {
    throw std::invalid_argument("compiled scenario, line " + std::to_string(number_) + " (" +
                                word_ + "): " + why);
  }
  std::string value(std::size_t i) const {
    if (i >= values_.size()) fail("expected at least " + std::to_string(i + 1) + " values");
    return values_[i];
  }
  std::int64_t whole(std::size_t i) const { return to_whole(value(i)); }
  bool has(const std::string& key) const { return find(key) != nullptr; }
  std::string text(const std::string& key, const std::string& fallback) const {
    const std::string* found = find(key);
    return found ? *found : fallback;
  }
  std::int64_t whole(const std::string& key, std::int64_t fallback) const {
    const std::string* found = find(key);
    return found ? to_whole(*found) : fallback;
  }
  double real(const std::string& key, double fallback) const {
    const std::string* found = find(key);
    return found ? to_real(*found) : fallback;
  }
  std::vector<int> list(const std::string& key) const {
    std::vector<int> out;
    const std::string* found = find(key);
    if (!found) return out;
    for (const std::string& part : split(*found, ','))
      out.push_back(static_cast<int>(to_whole(part)));
    return out;
  }
  std::int64_t to_whole(const std::string& s) const {
    char* end = nullptr;
    const long long v = std::strtoll(s.c_str(), &end, 10);
    if (s.empty() || *end) fail("'" + s + "' is not a whole number");
    return v;
  }
  double to_real(const std::string& s) const {
    char* end = nullptr;
    const double v = std::strtod(s.c_str(), &end);
    if (s.empty() || *end) fail("'" + s + "' is not a number");
    return v;
  }
  static std::vector<std::string> split(const std::string& s, char by) {
    std::vector<std::string> out;
    std::istringstream in(s);
    std::string part;
    while (std::getline(in, part, by)) {
      if (!part.empty()) out.push_back(part);
    }
    return out;
  }

 private:
  const std::string* find(const std::string& key) const {
    for (const auto& [k, v] : pairs_) {
      if (k == key) return &v;
    }
    return nullptr;
  }

  int number_;
  std::string word_;
  std::vector<std::string> values_;
  std::vector<std::pair<std::string, std::string>> pairs_;
};

Pattern pattern_of(const Line& line) {
  static const std::map<std::string, Pattern> names = {
      {"poisson", Pattern::kPoisson}, {"alltoall", Pattern::kAllToAll},
      {"incast", Pattern::kIncast},   {"permutation", Pattern::kPermutation},
      {"pairs", Pattern::kPairs},     {"flows", Pattern::kFlows},
      {"ring", Pattern::kRing}};
  const auto found = names.find(line.value(0));
  if (found == names.end()) line.fail("unknown pattern '" + line.value(0) + "'");
  return found->second;
}

class Parser {
 public:
  Scenario take() {
    check();
    return std::move(scenario_);
  }

  void read(const Line& line) {
    const std::string& word = line.word();
    if (word == "nodes") {
      scenario_.hosts = static_cast<int>(line.whole("hosts", 0));
      scenario_.switches.resize(static_cast<std::size_t>(line.whole("switches", 0)));
      if (scenario_.hosts < 2 || scenario_.hosts > 65535) line.fail("expected 2 to 65535 hosts");
    } else if (word == "switch") {
      read_switch(line);
    } else if (word == "link") {
      read_link(line);
    } else if (word == "wire") {
      read_wire(line);
    } else if (word == "pfc") {
      read_pfc(line);
    } else if (word == "transport") {
      read_transport(line);
    } else if (word == "scheme") {
      read_scheme(line);
    } else if (word == "cnp") {
      scenario_.transport.cnp_scope_port = line.text("scope", "qp") == "port";
      scenario_.transport.cnp_port_gap = line.whole("port_gap_ps", 0);
      scenario_.transport.cnp_delay = line.whole("delay_ps", 0);
    } else if (word == "monitor") {
      scenario_.monitor.kind = line.text("kind", "exact");
      scenario_.monitor.options = line.pairs();
    } else if (word == "cdf") {
      read_cdf(line);
    } else if (word == "workload") {
      read_workload(line);
    } else if (word == "flow") {
      if (scenario_.workloads.empty() || scenario_.workloads.back().pattern != Pattern::kFlows) {
        line.fail("a flow must follow 'workload flows'");
      }
      scenario_.workloads.back().transfers.push_back(
          {host(line, line.whole(0)), host(line, line.whole(1)), line.whole(2), line.whole(3)});
    } else {
      line.fail("unknown item");
    }
  }

 private:
  int host(const Line& line, std::int64_t h) const {
    if (h < 0 || h >= scenario_.hosts) {
      line.fail("host " + std::to_string(h) + " does not exist; hosts are 0 to " +
                std::to_string(scenario_.hosts - 1));
    }
    return static_cast<int>(h);
  }
  int node(const Line& line, std::int64_t n) const {
    if (n < 0 || n >= scenario_.nodes()) line.fail("node " + std::to_string(n) + " does not exist");
    return static_cast<int>(n);
  }

  void read_switch(const Line& line) {
    const int n = node(line, line.whole(0)) - scenario_.hosts;
    if (n < 0) line.fail("node " + line.value(0) + " is a host");
    scenario_.switches[static_cast<std::size_t>(n)] = {
        static_cast<int>(line.whole("tier", 0)), line.whole("buffer", 12582912),
        static_cast<std::uint32_t>(line.whole("salt", n))};
  }
  void read_link(const Line& line) {
    LinkSpec link{node(line, line.whole(0)), node(line, line.whole(1)),
                  line.whole("ps_per_byte", 80), line.whole("delay_ps", 5000000),
                  line.whole("headroom", 0)};
    if (link.a == link.b) line.fail("a link joins two different nodes");
    if (link.ps_per_byte < 1 || link.delay < 1) {
      line.fail("ps_per_byte and delay_ps must be at least 1");
    }
    scenario_.links.push_back(link);
  }
  void read_wire(const Line& line) {
    Wire& w = scenario_.wire;
    w.payload = line.whole("payload", w.payload);
    w.data_overhead = line.whole("data", w.data_overhead);
    w.ack = line.whole("ack", w.ack);
    w.cnp = line.whole("cnp", w.cnp);
    w.pfc = line.whole("pfc", w.pfc);
    w.cnp_in_ack = line.whole("cnp_in_ack", 0) != 0;
    if (w.payload < 1 || w.payload > 4096) line.fail("payload must be 1 to 4096 bytes");
    if (w.data_overhead < 0 || w.data_overhead > 4096) line.fail("data must be 0 to 4096 bytes");
    for (const Bytes frame : {w.ack, w.cnp}) {
      if (frame < 1 || frame > 4096) line.fail("ack and cnp must be 1 to 4096 bytes");
    }
    if (w.pfc < 1 || w.pfc > 65535) line.fail("pfc must be 1 to 65535 bytes");
  }
  void read_pfc(const Line& line) {
    PfcConfig& p = scenario_.pfc;
    p.enabled = line.whole("enabled", 1) != 0;
    p.lossless = 0;
    for (int priority : line.list("lossless")) p.lossless |= 1u << (priority & 7);
    p.alpha = line.real("alpha", p.alpha);
    p.reserve = line.whole("reserve", p.reserve);
    p.resume_offset = line.whole("resume_offset", p.resume_offset);
  }
  void read_transport(const Line& line) {
    Transport& t = scenario_.transport;
    // the old word for the scheme's mode
    if (line.has("rp")) {
      scenario_.schemes.push_back({"dcqcn", {{"mode", line.text("rp", "")}}, {}, line.number()});
    }
    t.qp_per_pair = line.text("qp", "flow") == "pair";
    t.ack_every = static_cast<std::uint32_t>(line.whole("ack_every", 1));
    t.window = line.whole("window", 0);
    t.window_scales = line.whole("window_scaling", 0) != 0;
    t.rto = line.whole("rto_ps", t.rto);
    t.dispatch_delay = line.whole("dispatch_delay_ps", 0);
    if (t.ack_every < 1) line.fail("ack_every must be at least 1");
  }
  void read_scheme(const Line& line) {
    SchemeSpec scheme{line.text("name", "dcqcn"), {}, line.list("hosts"), line.number()};
    for (const auto& [key, value] : line.pairs()) {
      if (key != "name" && key != "hosts") scheme.options.emplace_back(key, value);
    }
    for (int h : scheme.hosts) host(line, h);
    scenario_.schemes.push_back(std::move(scheme));
  }
  void read_cdf(const Line& line) {
    Cdf cdf;
    for (std::size_t i = 1; i < line.values().size(); ++i) {
      const auto parts = Line::split(line.values()[i], ':');
      if (parts.size() != 2) line.fail("expected bytes:probability, got " + line.values()[i]);
      cdf.push_back({line.to_real(parts[0]), line.to_real(parts[1])});
    }
    if (cdf.empty() || cdf.back().probability != 1.0) line.fail("the last probability must be 1");
    scenario_.cdfs.push_back(std::move(cdf));
  }
  void read_workload(const Line& line) {
    WorkloadSpec w;
    w.pattern = pattern_of(line);
    w.cdf = static_cast<int>(line.whole("cdf", 0));
    w.hosts = line.list("hosts");
    w.dsts = line.list(line.has("dsts") ? "dsts" : "dst");
    w.mean_gap = line.real("mean_gap_ps", 0);
    w.start = line.whole("start_ps", 0);
    w.stop = line.whole("stop_ps", -1);
    if (w.stop < 0) w.stop = kNever;
    w.repeat = line.whole("repeat_ps", 0);
    w.bytes = line.whole("bytes", 0);
    w.off = line.whole("off_ps", 0);
    w.rounds = line.whole("rounds", 0);
    w.steps = static_cast<int>(line.whole("steps", 0));
    w.messages = static_cast<int>(line.whole("messages", 1));
    w.priority = static_cast<unsigned>(line.whole("priority", 3)) & 7;
    for (int h : w.hosts) host(line, h);
    for (int h : w.dsts) host(line, h);
    for (const std::string& pair : Line::split(line.text("pairs", ""), ',')) {
      const auto arrow = pair.find('>');
      const auto colon = pair.find(':');
      if (arrow == std::string::npos || colon == std::string::npos) {
        line.fail("expected src>dst:bytes, got " + pair);
      }
      w.transfers.push_back({host(line, line.to_whole(pair.substr(0, arrow))),
                             host(line, line.to_whole(pair.substr(arrow + 1, colon - arrow - 1))),
                             line.to_whole(pair.substr(colon + 1)), 0});
    }
    if (w.pattern == Pattern::kPoisson) {
      if (w.cdf < 0 || w.cdf >= static_cast<int>(scenario_.cdfs.size())) line.fail("unknown cdf");
      if (!(w.mean_gap > 0)) line.fail("mean_gap_ps must be above 0");
      if (w.dsts.empty()) line.fail("dsts is empty");
    }
    if (w.messages < 1) line.fail("messages must be at least 1");
    if (w.pattern == Pattern::kRing && (w.steps < 1 || w.hosts.size() < 2)) {
      line.fail("a ring needs steps and at least 2 hosts");
    }
    scenario_.workloads.push_back(std::move(w));
  }

  void check() const {
    std::vector<int> degree(static_cast<std::size_t>(scenario_.nodes()));
    std::vector<Bytes> headroom(degree.size());
    for (const LinkSpec& l : scenario_.links) {
      for (int n : {l.a, l.b}) {
        ++degree[static_cast<std::size_t>(n)];
        headroom[static_cast<std::size_t>(n)] += l.headroom;
      }
    }
    for (int h = 0; h < scenario_.hosts; ++h) {
      if (degree[static_cast<std::size_t>(h)] != 1) {
        throw std::invalid_argument("host " + std::to_string(h) + " has " +
                                    std::to_string(degree[static_cast<std::size_t>(h)]) +
                                    " links; a host has exactly one");
      }
    }
    if (!scenario_.pfc.enabled) return;
    for (std::size_t s = 0; s < scenario_.switches.size(); ++s) {
      const std::size_t n = s + static_cast<std::size_t>(scenario_.hosts);
      const int priorities = __builtin_popcount(scenario_.pfc.lossless);
      const Bytes need = priorities * (headroom[n] + degree[n] * scenario_.pfc.reserve);
      if (need >= scenario_.switches[s].buffer) {
        throw std::invalid_argument("switch " + std::to_string(n) + ": headroom and reserve need " +
                                    std::to_string(need) + " B, but the buffer has " +
                                    std::to_string(scenario_.switches[s].buffer) + " B");
      }
    }
  }

  Scenario scenario_;
};

}  // namespace

Scenario Scenario::parse(const std::string& text) {
  std::istringstream in(text);
  std::string row;
  Parser parser;
  int number = 0;
  bool ended = false;
  while (std::getline(in, row)) {
    const Line line(row, ++number);
    if (number == 1) {
      if (line.word() != "dcqcn-gym-scenario" || line.value(0) != "1") {
        line.fail("expected 'dcqcn-gym-scenario 1'");
      }
    } else if (line.word() == "end") {
      ended = true;
      break;
    } else if (!line.word().empty()) {
      parser.read(line);
    }
  }
  if (!ended) throw std::invalid_argument("compiled scenario: 'end' is missing; the file is cut");
  return parser.take();
}

}  // namespace dcqcn
