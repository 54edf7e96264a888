// Random graphs of jobs: transfers, computation, joins and nested loops, in servers or not.
#include <set>
#include <string>
#include <vector>

#include "model/base/random_stream.hpp"
#include "random_options.hpp"

namespace dcqcn::fuzz {
namespace {

class GraphMaker {
 public:
  GraphMaker(RandomStream& draws, std::uint32_t hosts, std::uint32_t gpus)
      : draws_(draws), hosts_(hosts), gpus_(gpus) {}

  std::vector<std::string> make() {
    std::set<int> loose;
    nodes(1 + draws_.below(40), {}, -1, 0, loose);
    return lines_;
  }

 private:
  std::string number(std::uint64_t n) { return std::to_string(n); }
  std::string text(std::uint32_t n) { return std::to_string(draws_.below(n)); }

  // adds a line and returns its number; `loose` loses what it comes after
  int add(const std::string& words, const std::set<int>& after, std::set<int>& loose) {
    std::string line = "node " + words;
    std::string list;
    for (const int i : after) {
      list += (list.empty() ? "" : ",") + std::to_string(i);
      loose.erase(i);
    }
    if (!list.empty()) line += " after=" + list;
    if (draws_.below(2) == 0) line += " label=" + text(4);
    lines_.push_back(line);
    loose.insert(static_cast<int>(lines_.size()) - 1);
    return static_cast<int>(lines_.size()) - 1;
  }

  std::set<int> some(const std::vector<int>& visible, int begin) {
    std::set<int> after;
    if (!visible.empty() && (begin >= 0 || draws_.below(5) > 0)) {
      for (std::uint32_t k = 0, n = 1 + draws_.below(3); k < n; ++k) {
        const auto last = static_cast<std::uint32_t>(visible.size());
        const std::uint32_t near = draws_.below(2) == 0 ? std::min(last, 4u) : last;
        after.insert(visible[last - 1 - draws_.below(near)]);
      }
    }
    if (begin >= 0 && after.empty()) after.insert(begin);
    return after;
  }

  void nodes(std::uint32_t n, std::vector<int> visible, int begin, int depth,
             std::set<int>& loose) {
    if (begin >= 0) visible.push_back(begin);
    for (std::uint32_t k = 0; k < n; ++k) {
      const std::set<int> after = some(visible, begin);
      if (depth < 3 && draws_.below(10) == 0) {
        visible.push_back(loop(after, depth, loose));
      } else {
        visible.push_back(add(any_node(), after, loose));
      }
    }
  }

  int loop(const std::set<int>& after, int depth, std::set<int>& loose) {
    const std::string home = text(hosts_);
    std::set<int> inner;
    const int begin = add("join " + home + " " + home + " 0", after, inner);
    for (const int i : after) loose.erase(i);
    nodes(draws_.below(8), {}, begin, depth + 1, inner);
    const std::set<int> ends = inner;
    const int last =
        add("repeat " + home + " " + home + " " + number(1 + draws_.below(4)), ends, inner);
    lines_.back() += " begin=" + std::to_string(begin);
    loose.insert(last);
    return last;
  }

  std::string any_node() {
    const std::uint32_t src = draws_.below(hosts_);
    const std::string from = number(src) + " ";
    const std::uint32_t kind = draws_.below(10);
    if (kind < 2) return "delay " + from + from + a_time();
    if (kind < 3) return "join " + from + from + "0";
    const std::uint32_t first = src / gpus_ * gpus_;
    const std::uint32_t size = std::min(gpus_, hosts_ - first);
    if (kind < 5 && size > 1) {
      const std::uint32_t dst = first + (src - first + 1 + draws_.below(size - 1)) % size;
      return "local " + from + number(dst) + " " + a_size();
    }
    const std::uint32_t dst = (src + 1 + draws_.below(hosts_ - 1)) % hosts_;
    return "transfer " + from + number(dst) + " " + a_size() +
           (draws_.below(3) == 0 ? " connection=" + text(3) : "");
  }
  std::string a_size() {
    return number(1 + (draws_.below(3) == 0 ? draws_.below(200'000) : draws_.below(3000)));
  }
  std::string a_time() {
    const std::uint32_t how = draws_.below(4);
    return how == 0 ? "0" : how == 1 ? text(2000) : text(how == 2 ? 3'000'000 : 40'000'000);
  }

  RandomStream& draws_;
  std::uint32_t hosts_, gpus_;
  std::vector<std::string> lines_;
};

// the hosts in a random order; endpoints of a server stay together
std::string placed(RandomStream& draws, std::uint32_t hosts, bool in_order) {
  std::vector<std::uint32_t> order(hosts);
  for (std::uint32_t h = 0; h < hosts; ++h) order[h] = h;
  for (std::uint32_t i = hosts; !in_order && i-- > 1;)
    std::swap(order[i], order[draws.below(i + 1)]);
  std::string s;
  for (const std::uint32_t h : order) s += (s.empty() ? "" : ",") + std::to_string(h);
  return s;
}

}  // namespace

void add_graphs(Job& job, std::uint64_t seed, std::uint64_t number) {
  RandomStream draws(seed, Purpose::kArrivals, number + (1ull << 40));
  if (draws.below(2) == 0) return;
  const Scenario scenario = [&] {
    try {
      return Scenario::parse(job.compiled());
    } catch (const std::invalid_argument&) {
      return Scenario{};
    }
  }();
  if (scenario.hosts == 0) return;
  const auto hosts = static_cast<std::uint32_t>(scenario.hosts);
  const std::uint32_t gpus = draws.below(3) == 0 ? 1 : 1 + draws.below(hosts);
  std::vector<std::string> lines;
  if (gpus > 1) {
    lines.push_back("servers gpus=" + std::to_string(gpus) +
                    " rate_bps=" + std::to_string(100'000'000'000 + draws.below(2'000'000'000)) +
                    " delay_ps=" + std::to_string(1 + draws.below(2'000'000)));
  }
  for (std::uint32_t k = 0, n = 1 + draws.below(2); k < n; ++k) {
    const auto below = [&](std::uint32_t most) { return std::to_string(draws.below(most)); };
    lines.push_back("workload job hosts=" + placed(draws, hosts, gpus > 1) + " start_ps=" +
                    below(50'000'000) + " off_ps=" + below(10'000'000) + " rounds=" + below(5) +
                    " stop_ps=" + (draws.below(2) == 0 ? "-1" : "300000000") +
                    " qps=" + std::to_string(1 + draws.below(4)) + " split=" + below(2) +
                    " admission=" + (draws.below(2) == 0 ? "0" : below(4)) +
                    " priority=" + std::to_string(scenario.workloads.front().priority));
    const std::vector<std::string> nodes = GraphMaker(draws, hosts, gpus).make();
    lines.insert(lines.end(), nodes.begin(), nodes.end());
  }
  job.scenario.insert(job.scenario.end() - 1, lines.begin(), lines.end());  // before `end`
}

}  // namespace dcqcn::fuzz
