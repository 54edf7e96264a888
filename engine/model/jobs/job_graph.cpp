#include "model/jobs/job_graph.hpp"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

namespace dcqcn {
namespace {

constexpr std::uint64_t kMostNodes = 1u << 30;
constexpr std::uint32_t kNoLoop = ~0u;

[[noreturn]] void refuse(const std::string& why) { throw std::invalid_argument(why); }
[[noreturn]] void refuse(std::uint64_t node, const char* why) {
  refuse("node " + std::to_string(node) + " " + why);
}

// reads little-endian columns one after the other
class Columns {
 public:
  explicit Columns(std::string_view bytes) : bytes_(bytes) {}
  // f(index, value)
  template <class T, class F>
  void each(std::uint64_t count, F&& f) {
    if (count > (bytes_.size() - at_) / sizeof(T)) refuse("it is cut");
    for (std::uint64_t i = 0; i < count; ++i, at_ += sizeof(T)) {
      std::uint64_t value = 0;
      for (std::size_t k = sizeof(T); k-- > 0;) {
        value = value << 8 | static_cast<unsigned char>(bytes_[at_ + k]);
      }
      f(i, static_cast<T>(value));
    }
  }
  std::uint64_t bytes() const { return bytes_.size(); }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

struct Head {
  static constexpr std::uint64_t kMagic = 0x424F4A4E43514344;  // "DCQCNJOB"
  std::uint64_t words[7] = {};  // magic, version, nodes, edges, loops, endpoints, bytes of names

  std::uint64_t bytes() const {
    return sizeof words + words[2] * 17 + (words[2] + 1 + words[3] + 2 * words[4]) * 4 + words[6];
  }
  void check(std::uint64_t have) const {
    if (words[0] != kMagic || words[1] != 1) refuse("it is no job graph of version 1");
    if (words[2] < 1 || words[2] > kMostNodes || words[3] >> 32 || words[4] > words[2] ||
        words[5] < 1 || words[5] > 65535 || bytes() != have) {
      refuse("it is cut or broken");
    }
  }
};

JobGraph read_columns(Columns& in) {
  Head head;
  in.each<std::uint64_t>(7, [&](std::uint64_t i, std::uint64_t v) { head.words[i] = v; });
  head.check(in.bytes());
  const std::uint64_t n = head.words[2];
  JobGraph g;
  g.endpoints = static_cast<std::uint32_t>(head.words[5]);
  g.nodes.resize(n);
  g.first.resize(n + 1);
  in.each<std::uint8_t>(n, [&](std::uint64_t i, std::uint8_t v) {
    if (v >= kJobKinds) refuse(i, "is of a kind that does not exist");
    g.nodes[i].kind = v & 7u;
  });
  in.each<std::uint16_t>(n, [&](std::uint64_t i, std::uint16_t v) { g.nodes[i].src = v; });
  in.each<std::uint16_t>(n, [&](std::uint64_t i, std::uint16_t v) { g.nodes[i].dst = v; });
  in.each<std::uint16_t>(n, [&](std::uint64_t i, std::uint16_t v) { g.nodes[i].connection = v; });
  in.each<std::uint16_t>(n, [&](std::uint64_t i, std::uint16_t v) { g.nodes[i].label = v; });
  in.each<std::uint64_t>(n, [&](std::uint64_t i, std::uint64_t v) {
    if (v >> 55) refuse(i, "has bytes, time or count out of range");
    g.nodes[i].value = v & ((1ull << 55) - 1);
  });
  in.each<std::uint32_t>(n + 1, [&](std::uint64_t i, std::uint32_t v) { g.first[i] = v; });
  g.successors.resize(head.words[3]);
  in.each<std::uint32_t>(head.words[3],
                         [&](std::uint64_t i, std::uint32_t v) { g.successors[i] = v; });
  g.loops.resize(head.words[4]);
  in.each<std::uint32_t>(2 * head.words[4], [&](std::uint64_t i, std::uint32_t v) {
    (i % 2 == 0 ? g.loops[i / 2].begin : g.loops[i / 2].last) = v;
  });
  return g;
}

void check_node(const JobGraph& g, std::uint32_t i) {
  const JobNode& node = g.nodes[i];
  if (node.src >= g.endpoints || node.dst >= g.endpoints) refuse(i, "names too high an endpoint");
  if (node.moves() == (node.src == node.dst))
    refuse(i, "moves bytes nowhere, or is none that does");
  const bool positive = node.moves() || node.is() == JobKind::kRepeat;
  if (positive && node.value == 0) refuse(i, "has bytes, time or count out of range");
  if (g.first[i] > g.first[i + 1]) refuse("its edges do not add up");
}

// the loop that a node's outgoing edges belong to, and the one of its incoming ones
struct Scopes {
  std::vector<std::uint32_t> inner, outer;

  explicit Scopes(const JobGraph& g) : inner(g.size(), kNoLoop), outer(inner) {
    std::uint32_t repeats = 0;
    for (std::uint32_t i = 0; i < g.size(); ++i) repeats += g.nodes[i].is() == JobKind::kRepeat;
    if (repeats != g.loops.size()) refuse("a repeat has no loop, or a loop no repeat");
    for (std::uint32_t k = 0; k < g.loops.size(); ++k) paint(g, k);
  }

 private:
  void paint(const JobGraph& g, std::uint32_t k) {
    const auto [begin, last] = g.loops[k];
    const bool ordered = k == 0 || g.loops[k - 1].begin < begin;
    if (!ordered || begin >= last || last >= g.size() || g.nodes[begin].is() != JobKind::kJoin ||
        g.nodes[last].is() != JobKind::kRepeat || inner[begin] != inner[last] ||
        g.nodes[begin].src != g.nodes[last].src) {
      refuse("loop " + std::to_string(k) + " does not fit into the graph");
    }
    std::fill(inner.begin() + begin, inner.begin() + last, k);
    std::fill(outer.begin() + begin + 1, outer.begin() + last + 1, k);
  }
};

}  // namespace

// all nodes of a label and a loop run equally often, so that it is known when they are done
static void number_labels(JobGraph& g, const std::vector<std::uint32_t>& loop) {
  std::unordered_map<std::uint64_t, std::uint16_t> numbers;
  g.labels = {0};
  for (std::uint32_t i = 0; i < g.size(); ++i) {
    JobNode& node = g.nodes[i];
    if (node.label == 0) continue;
    const std::uint64_t key = static_cast<std::uint64_t>(loop[i]) << 16 | node.label;
    const auto [at, fresh] = numbers.try_emplace(key, static_cast<std::uint16_t>(g.labels.size()));
    if (fresh) g.labels.push_back(node.label);
    if (g.labels.size() > 65536) refuse("more than 65535 labels, each counted for every loop");
    node.label = at->second;
  }
}

void JobGraph::check() {
  if (first.front() != 0 || first.back() != successors.size()) {
    refuse("its edges do not add up");
  }
  for (std::uint32_t i = 0; i < size(); ++i) check_node(*this, i);
  const Scopes scopes(*this);
  std::vector<bool> follows(size());
  for (std::uint32_t i = 0; i < size(); ++i) {
    nodes[i].outside = scopes.inner[i] == kNoLoop;
    for_each_successor(i, [&](std::uint32_t next) {
      if (next <= i || next >= size()) refuse(i, "leads to a node of no higher number");
      if (scopes.inner[i] != scopes.outer[next]) refuse(i, "leads into a loop or out of one");
      follows[next] = true;
      nodes[i].heard |= nodes[i].is() == JobKind::kTransfer && nodes[next].src == nodes[i].src;
    });
    const bool ends = first[i] == first[i + 1];
    if ((scopes.inner[i] != kNoLoop && ends) || (scopes.outer[i] != kNoLoop && !follows[i])) {
      refuse(i, "of a loop is not between its ends");
    }
  }
  number_labels(*this, scopes.inner);
}

JobGraph JobGraph::read(std::string_view bytes) {
  Columns in(bytes);
  JobGraph graph = read_columns(in);
  graph.check();
  return graph;
}

JobGraph graph_of(const std::vector<JobLine>& lines, std::uint32_t endpoints) {
  JobGraph g;
  g.endpoints = endpoints;
  std::vector<std::vector<std::uint32_t>> after(lines.size());
  for (std::uint32_t i = 0; i < lines.size(); ++i) {
    for (const int before : lines[i].after) {
      if (static_cast<std::uint32_t>(before) >= i) refuse(i, "comes after one of no lower number");
      after[static_cast<std::uint32_t>(before)].push_back(i);
    }
    if (lines[i].begin >= 0) g.loops.push_back({static_cast<std::uint32_t>(lines[i].begin), i});
  }
  std::sort(g.loops.begin(), g.loops.end(),
            [](const JobGraph::Loop& a, const JobGraph::Loop& b) { return a.begin < b.begin; });
  for (std::uint32_t i = 0; i < lines.size(); ++i) {
    g.nodes.push_back(lines[i].node);
    g.first.push_back(static_cast<std::uint32_t>(g.successors.size()));
    g.successors.insert(g.successors.end(), after[i].begin(), after[i].end());
  }
  g.first.push_back(static_cast<std::uint32_t>(g.successors.size()));
  if (lines.empty()) refuse("a job without a node");
  g.check();
  return g;
}

}  // namespace dcqcn
