#include "random_job.hpp"

#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <sstream>
#include <stdexcept>

#include "dice.hpp"
#include "model/monitors/monitor_config.hpp"
#include "model/settings/knob_tables.hpp"
#include "random_options.hpp"

namespace dcqcn::fuzz {
namespace {

std::string text(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.17g", value);
  return buffer;
}

class Maker {
 public:
  Maker(std::uint64_t seed, std::uint64_t number) : dice_(seed, number) {}

  Job make() {
    network();
    wire();
    pfc();
    switches_and_links();
    transport();
    monitor();
    traffic();
    line("end");
    script();
    return job_;
  }

 private:
  struct Link {
    int a, b;
    std::int64_t ps_per_byte, delay;
  };

  void line(const std::string& s) { job_.scenario.push_back(s); }
  static std::string item(const char* key, std::int64_t value) {
    return std::string(" ") + key + "=" + std::to_string(value);
  }
  int any_host() { return static_cast<int>(dice_.whole(0, hosts_ - 1)); }

  // ---- topology ----

  std::int64_t a_rate() {
    return mixed_rates_ ? dice_.pick<std::int64_t>({10, 20, 40, 80, 160, 320}) : rate_;
  }
  std::int64_t a_delay() {
    return mixed_delays_ ? dice_.whole(delay_ / 4 + 1, delay_ * 2) : delay_;
  }
  void join(int a, int b) { links_.push_back({a, b, a_rate(), a_delay()}); }

  void network() {
    mixed_rates_ = dice_.one_in(3);
    mixed_delays_ = dice_.one_in(3);
    rate_ = dice_.pick<std::int64_t>({80, 80, 20, 160});
    delay_ = dice_.one_in(12) ? dice_.log_whole(2, 20'000)
                              : dice_.pick<std::int64_t>({200'000, 500'000, 1'000'000, 5'000'000,
                                                          dice_.whole(100'000, 9'000'000)});
    const std::int64_t shape = dice_.whole(0, 3);
    if (shape == 0) {
      star();
    } else if (shape == 1) {
      leaf_spine();
    } else {
      graph();
    }
  }
  void star() {
    hosts_ = static_cast<int>(dice_.whole(2, 9));
    switches_ = 1;
    for (int h = 0; h < hosts_; ++h) join(h, hosts_);
  }
  void leaf_spine() {
    const int tors = static_cast<int>(dice_.whole(2, 4));
    const int per_tor = static_cast<int>(dice_.whole(1, 4));
    const int spines = static_cast<int>(dice_.whole(1, 3));
    hosts_ = tors * per_tor;
    switches_ = tors + spines;
    for (int h = 0; h < hosts_; ++h) join(h, hosts_ + h / per_tor);
    for (int t = 0; t < tors; ++t) {
      for (int s = 0; s < spines; ++s) join(hosts_ + t, hosts_ + tors + s);
    }
  }
  void graph() {
    hosts_ = static_cast<int>(dice_.whole(2, 10));
    switches_ = static_cast<int>(dice_.whole(1, 6));
    const auto any_switch = [&] {
      return hosts_ + static_cast<int>(dice_.whole(0, switches_ - 1));
    };
    for (int s = 1; s < switches_; ++s) {
      join(hosts_ + s, hosts_ + static_cast<int>(dice_.whole(0, s - 1)));
    }
    for (int h = 0; h < hosts_; ++h) join(h, any_switch());
    const std::int64_t more = dice_.whole(0, switches_);
    for (std::int64_t i = 0; i < more; ++i) {  // some of them parallel to a link that exists
      const int a = any_switch(), b = any_switch();
      if (a != b) join(a, b);
    }
  }

  // ---- wire, switches, PFC ----

  void wire() {
    if (!dice_.one_in(3)) {
      payload_ = dice_.pick<std::int64_t>({1000, 1000, 4096, 256, dice_.whole(1, 4096)});
    }
    std::string s = "wire" + item("payload", payload_);
    if (dice_.one_in(3)) {
      overhead_ = dice_.whole(1, 200);
      s += item("ack", dice_.whole(1, 300)) + item("cnp", dice_.whole(1, 300)) +
           item("pfc", dice_.whole(1, 300));
    }
    s += item("data", overhead_) + item("cnp_in_ack", dice_.one_in(4));
    line(s);
  }

  void pfc() {
    pfc_on_ = !dice_.one_in(4);
    lossless_ = dice_.pick<std::vector<int>>({{3}, {3}, {3}, {3, 4}, {0, 3, 7}, {}});
    reserve_ = dice_.pick<std::int64_t>({4096, 4096, 0, 100, 20'000});
    std::string list;
    for (int p : lossless_) list += (list.empty() ? "" : ",") + std::to_string(p);
    line("pfc" + item("enabled", pfc_on_) + " lossless=" + (list.empty() ? "none" : list) +
         " alpha=" + text(dice_.pick<double>({0.125, 0.125, 1.0, 0.01, 8.0, dice_.real(0, 2)})) +
         item("reserve", reserve_) +
         item("resume_offset", dice_.pick<std::int64_t>({3072, 3072, 0, 100'000})));
  }

  void switches_and_links() {
    const bool tight = dice_.one_in(4);  // not enough headroom
    std::vector<std::int64_t> need(static_cast<std::size_t>(switches_));
    std::vector<std::string> rows;
    for (const Link& l : links_) {
      const std::int64_t flight = 2 * l.delay / l.ps_per_byte + 3 * (payload_ + overhead_) + 1000;
      const std::int64_t headroom = tight ? dice_.whole(0, flight) : flight;
      for (int end : {l.a, l.b}) {
        if (end >= hosts_) need[static_cast<std::size_t>(end - hosts_)] += headroom + reserve_;
      }
      rows.push_back("link " + std::to_string(l.a) + " " + std::to_string(l.b) +
                     item("ps_per_byte", l.ps_per_byte) + item("delay_ps", l.delay) +
                     item("headroom", headroom));
    }
    line("nodes" + item("hosts", hosts_) + item("switches", switches_));
    std::swap(job_.scenario.back(), job_.scenario.front());  // before everything that names nodes
    const bool small = dice_.one_in(2);
    for (int s = 0; s < switches_; ++s) {
      const std::int64_t shared = small ? dice_.log_whole(2'000, 500'000) : 4'000'000;
      const std::int64_t kept = need[static_cast<std::size_t>(s)] *
                                static_cast<std::int64_t>(pfc_on_ ? lossless_.size() : 1);
      line("switch " + std::to_string(hosts_ + s) + item("buffer", kept + shared) +
           item("salt", dice_.whole(0, 1'000'000)));
    }
    for (const std::string& row : rows) line(row);
    job_.scenario.insert(job_.scenario.begin(), "dcqcn-gym-scenario 1");
  }

  // ---- transport and monitor ----

  void transport() {
    pairs_kept_ = dice_.one_in(3);
    line(std::string("scheme name=dcqcn mode=") + (dice_.one_in(4) ? "paper" : "nic"));
    std::string s = std::string("transport qp=") + (pairs_kept_ ? "pair" : "flow");
    s += item("ack_every", dice_.pick<std::int64_t>({1, 1, 1, 2, 4, 16}));
    if (dice_.one_in(3)) {
      s += item("window", dice_.log_whole(1, 500'000)) + item("window_scaling", dice_.one_in(2));
    }
    s += item("rto_ps", dice_.log_whole(10e6, 4e9));
    if (dice_.one_in(4)) s += item("dispatch_delay_ps", dice_.log_whole(1, 50e6));
    line(s);
    std::string cnp = std::string("cnp scope=") + (dice_.one_in(4) ? "port" : "qp");
    if (dice_.one_in(4)) cnp += item("port_gap_ps", dice_.log_whole(1, 20e6));
    if (dice_.one_in(4)) cnp += item("delay_ps", dice_.log_whole(1, 20e6));
    line(cnp);
  }

  void monitor() {
    const std::string kind = dice_.pick<std::string>(
        {"exact", "exact", "elastic", "elastic-naive", "netflow", "chameleon", "none"});
    std::string s = "monitor kind=" + kind + item("tau", dice_.log_whole(1, 1e6)) +
                    item("delta", dice_.whole(1, 4));
    s += item("heavy_bytes", dice_.log_whole(500, 20'000)) +
         item("light_bytes", dice_.log_whole(100, 20'000));
    s += item("sample_one_in", dice_.log_whole(1, 50)) + item("labels", dice_.one_in(4));
    s += item("export_ps", dice_.log_whole(1e6, 1e9)) +
         item("local_ps", dice_.log_whole(1e6, 1e8)) + item("upload_ps", dice_.log_whole(1e6, 1e9));
    line(of_kind(kind, s));
  }

  // the words of a monitor line without the options that other kinds have
  static std::string of_kind(const std::string& kind, const std::string& words) {
    const auto kinds = monitor_kinds();
    const auto own =
        std::find_if(kinds.begin(), kinds.end(), [&](const auto& k) { return k.name == kind; });
    std::istringstream in(words);
    std::string kept;
    for (std::string word; in >> word;) {
      const std::string key = word.substr(0, word.find('='));
      const bool known = std::count(own->keys.begin(), own->keys.end(), key) > 0;
      if (kept.empty() || known) kept += (kept.empty() ? "" : " ") + word;
    }
    return kept;
  }

  // ---- traffic ----

  std::string several_hosts(bool at_least_two = true) {
    std::string s;
    int n = 0;
    for (int h = 0; h < hosts_; ++h) {
      const bool needed = at_least_two && hosts_ - h <= 2 - n;
      if (!needed && dice_.one_in(3)) continue;
      s += (s.empty() ? "" : ",") + std::to_string(h);
      ++n;
    }
    return s.empty() ? "0" : s;
  }
  std::int64_t a_size() {
    return dice_.one_in(3) ? dice_.log_whole(1, 5'000) : dice_.log_whole(5'000, 2e6);
  }

  void traffic() {
    const bool one_priority = !dice_.one_in(3);
    const std::int64_t priority = dice_.one_in(6) ? 4 : 3;
    const std::int64_t n = dice_.whole(1, 4);
    for (std::int64_t i = 0; i < n; ++i) {
      workload(one_priority ? priority : dice_.pick<std::int64_t>({0, 3, 3, 4, 7}));
    }
  }

  void workload(std::int64_t priority) {
    const std::string kind =
        dice_.pick<std::string>({"poisson", "poisson", "alltoall", "incast", "incast",
                                 "permutation", "pairs", "flows", "ring"});
    std::string rest = item("priority", priority);
    if (kind == "flows") {
      line("workload flows" + rest);
      const std::int64_t n = dice_.whole(0, 20);
      for (std::int64_t i = 0; i < n; ++i) a_flow();
      return;
    }
    rest += item("start_ps", dice_.one_in(2) ? 0 : dice_.whole(0, 100'000'000));
    if (kind == "poisson") {
      poisson(rest);
      return;
    }
    // pairs have their own sizes, but what is drawn stays the same
    const auto sized = [&](std::int64_t bytes) {
      return kind == "pairs" ? std::string() : item("bytes", bytes);
    };
    rest += sized(a_size()) + item("off_ps", dice_.log_whole(1, 5e7)) +
            item("rounds", dice_.whole(0, 3));
    if (dice_.one_in(3)) rest += item("messages", dice_.whole(1, 5));
    if (kind == "incast") {
      rest += " hosts=" + several_hosts() + item("dst", any_host());
    } else if (kind == "pairs") {
      rest += " pairs=" + some_pairs();
    } else {
      rest += " hosts=" + several_hosts();
    }
    if (kind == "ring") rest += item("steps", dice_.whole(1, 6));
    line("workload " + kind + rest);
  }
  void a_flow() {
    const int src = any_host();
    const int dst = (src + 1 + static_cast<int>(dice_.whole(0, hosts_ - 2))) % hosts_;
    // whole microseconds now and then, so that starts coincide
    const std::int64_t start =
        dice_.one_in(2) ? dice_.whole(0, 100) * 1'000'000 : dice_.whole(0, 200'000'000);
    line("flow " + std::to_string(src) + " " + std::to_string(dst) + " " +
         std::to_string(a_size()) + " " + std::to_string(start));
  }
  std::string some_pairs() {
    std::string s;
    const std::int64_t n = dice_.whole(1, 8);
    for (std::int64_t i = 0; i < n; ++i) {
      const int src = any_host();
      const int dst = (src + 1 + static_cast<int>(dice_.whole(0, hosts_ - 2))) % hosts_;
      s += (s.empty() ? "" : ",") + std::to_string(src) + ">" + std::to_string(dst) + ":" +
           std::to_string(a_size());
    }
    return s;
  }
  void poisson(const std::string& rest) {
    if (cdfs_ == 0) {
      line("cdf 0 0:0 500:0.5 20000:0.9 400000:1");
      line("cdf 1 1:0.3 3000:1");
      cdfs_ = 2;
    }
    std::string s = "workload poisson" + item("cdf", dice_.whole(0, 1)) +
                    " hosts=" + several_hosts(false) + " dsts=" + several_hosts() +
                    " mean_gap_ps=" + text(dice_.log_real(3e5, 3e7)) + rest;
    if (dice_.one_in(3)) {
      s += item("stop_ps", dice_.whole(100'000'000, 200'000'000));
      if (dice_.one_in(2)) s += item("repeat_ps", dice_.whole(200'000'000, 300'000'000));
    }
    line(s);
  }

  // ---- the script: settings, advances, reports ----

  double extreme(double low, double high) {
    const std::int64_t which = dice_.whole(0, 3);
    return which == 0 ? low : which == 1 ? high : dice_.log_real(low, high);
  }
  double off_or(double low, double high) { return dice_.one_in(4) ? 0.0 : extreme(low, high); }

  // anything the engine takes, in SI units: a rate is at most the line's, and a size, time or rate
  // whose lowest legal value is 0 is now and then 0
  double any_value(const KnobRow& row, double line) {
    const KnobRange tried = row.tried();
    const std::string_view unit = row.unit.name, si_unit = row.unit.si_unit;
    if (unit == kFlag.name) return dice_.one_in(2) ? 1.0 : 0.0;
    if (unit == kPercent.name) return dice_.one_in(3) ? 0.0 : dice_.real(tried.low, tried.high);
    if (si_unit == "1") {
      const double per_unit = row.unit.si_per_unit;
      const double value = static_cast<double>(
          dice_.whole(whole(tried.low / per_unit), whole(tried.high / per_unit)));
      return value * per_unit;
    }
    const double high = si_unit == kMegabits.si_unit ? std::min(tried.high, line) : tried.high;
    const double low = tried.low > 0 ? tried.low : high * 1e-6;
    return row.legal.low > 0 ? extreme(low, high) : off_or(low, high);
  }
  std::string nic_row() {
    const double line = 8e12 / static_cast<double>(rate_);
    const std::vector<KnobRow>& rows = scheme_knobs().front().nic;
    std::vector<double> values;
    for (const KnobRow& row : rows) values.push_back(any_value(row, line));
    // half of the rows keep most knobs at their defaults
    const bool mild = dice_.one_in(2);
    std::string s;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      s += " " + text(mild && !dice_.one_in(4) ? rows[i].initial_si() : values[i]);
    }
    return s;
  }
  std::string ecn_row() {
    const std::int64_t kmin = dice_.one_in(4) ? 0 : dice_.log_whole(1, 2e6);
    const std::int64_t kmax = kmin + (dice_.one_in(4) ? 0 : dice_.log_whole(1, 1'000'000));
    return " " + std::to_string(kmin) + " " + std::to_string(kmax) + " " +
           text(dice_.pick<double>({0.0, 0.01, 0.2, 1.0, dice_.real(0, 1)}));
  }

  void settings() {
    auto& out = job_.script;
    if (!dice_.one_in(4)) out.push_back("nic *" + nic_row());
    if (!dice_.one_in(4)) out.push_back("ecn *" + ecn_row());
    if (dice_.one_in(3)) out.push_back("nic " + std::to_string(any_host()) + nic_row());
    if (dice_.one_in(3)) {
      const std::int64_t ports = static_cast<std::int64_t>(links_.size()) * 2;
      out.push_back("ecn " + std::to_string(dice_.whole(0, ports - 1)) + ecn_row());
    }
    out.push_back("apply");
  }

  void script() {
    job_.script.push_back("seed " + std::to_string(dice_.whole(0, 1'000'000'000)));
    // as long as the links, all busy, need for a number of packet-hops that is quick to simulate
    double per_ps = 0;
    for (const Link& l : links_) {
      per_ps += 2.0 / static_cast<double>(l.ps_per_byte * (payload_ + overhead_));
    }
    const double most = std::min({300'000.0 / per_ps, 1e9, static_cast<double>(delay_) * 50'000});
    const std::int64_t duration = std::max<std::int64_t>(1000, dice_.log_whole(most / 10, most));
    const std::int64_t steps = dice_.whole(1, 8);
    Time now = 0;
    for (std::int64_t i = 0; i < steps; ++i) {
      if (!dice_.one_in(3)) settings();
      now += dice_.whole(0, 2 * duration / steps);
      job_.script.push_back("run " + std::to_string(now));
      if (!dice_.one_in(3)) job_.script.push_back("report");
    }
    job_.script.push_back("report");
  }

  Dice dice_;
  Job job_;
  int hosts_ = 0;
  int switches_ = 0;
  std::vector<Link> links_;
  bool mixed_rates_ = false, mixed_delays_ = false, pfc_on_ = true, pairs_kept_ = false;
  std::int64_t rate_ = 80, delay_ = 0, payload_ = 1000, overhead_ = 62, reserve_ = 4096;
  std::vector<int> lossless_;
  int cdfs_ = 0;
};

}  // namespace

Job random_job(std::uint64_t seed, std::uint64_t number, int generation) {
  if (generation < 1 || generation > kGeneration) {
    throw std::invalid_argument("no generation " + std::to_string(generation) + " of random jobs");
  }
  Job job = Maker(seed, number).make();
  if (generation >= 2) add_options(job, seed, number);
  if (generation >= 3) add_traffic(job, seed, number);
  if (generation >= 4) add_probes(job, seed, number);
  if (generation >= 5) change_buffers(job, seed, number);
  if (generation >= 6) add_graphs(job, seed, number);
  if (generation >= 7) add_classes(job, seed, number);
  if (generation >= 8) add_card(job, seed, number);
  return job;
}

}  // namespace dcqcn::fuzz
