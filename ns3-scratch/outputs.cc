// SPDX-License-Identifier: GPL-2.0-only
#include "outputs.h"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "model/knob_tables.hpp"

namespace ns3 {
namespace {

constexpr double kClassesPerE = 1000, kTop = 30;
constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (double v : values) sum += v;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

std::vector<std::string> Words(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::string Optional(bool known, double value) { return known ? Repr(value) : "null"; }

}  // namespace

std::string Repr(double value) {
  if (value == 0) return "0.0";
  char buffer[40];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, std::abs(value), std::chars_format::scientific);
  std::string digits(buffer, end.ptr);
  const std::size_t e = digits.find('e');
  const int exponent = std::stoi(digits.substr(e + 1));
  digits.erase(e);
  if (digits.size() > 1) digits.erase(1, 1);  // the point
  std::string out(value < 0 ? "-" : "");
  if (exponent < -4 || exponent >= 16) {
    out.append(digits, 0, 1);
    if (digits.size() > 1) out.append(".").append(digits, 1);
    out.append(exponent < 0 ? "e-" : "e+");
    if (std::abs(exponent) < 10) out.append("0");
    out.append(std::to_string(std::abs(exponent)));
  } else if (exponent < 0) {
    out.append("0.").append(static_cast<std::size_t>(-exponent - 1), '0').append(digits);
  } else {
    const std::size_t whole = static_cast<std::size_t>(exponent) + 1;
    if (digits.size() <= whole) digits.append(whole + 1 - digits.size(), '0');
    out.append(digits, 0, whole).append(".").append(digits, whole);
  }
  return out;
}

std::string Nanoseconds(int64_t ps) {
  std::string text = std::to_string(ps / 1000);
  if (ps % 1000 == 0) return text;
  std::string rest = std::to_string(1000 + ps % 1000).substr(1);
  rest.erase(rest.find_last_not_of('0') + 1);
  return text + "." + rest;
}

void RunInfo::Set(const std::string& key, const std::string& value) {
  if (key == "name") {
    name = value;
  } else if (key == "version") {
    version = value;
  } else if (key == "interval_ps") {
    interval_ps = std::stoll(value);
  } else if (key == "intervals") {
    intervals = std::stoll(value);
  } else if (key == "weights") {
    if (std::sscanf(value.c_str(), "%lf,%lf,%lf", &weights[0], &weights[1], &weights[2]) != 3) {
      throw std::invalid_argument("expected three numbers");
    }
  } else if (key == "active_share") {
    active_share = std::stod(value);
  } else if (key == "pfc_over") {
    pfc_over_paused = value == "paused";
  } else {
    throw std::invalid_argument("unknown key");
  }
}

void RunInfo::SetCollective(const std::string& key, const std::string& value) {
  Collective& c = collectives.back();
  if (key == "kind") {
    c.kind = value;
    return;
  }
  const std::map<std::string, int64_t*> numbers = {{"workload", &c.workload},
                                                   {"ranks", &c.ranks},
                                                   {"bytes", &c.bytes},
                                                   {"flows", &c.flows},
                                                   {"pause_ps", &c.pause_ps}};
  const auto at = numbers.find(key);
  if (at == numbers.end()) throw std::invalid_argument("unknown key");
  *at->second = std::stoll(value);
}

RunInfo RunInfo::Parse(const std::string& text) {
  RunInfo info;
  std::istringstream in(text);
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.rfind("#! ", 0) != 0) continue;
    const std::vector<std::string> words = Words(line);
    const std::string kind = words.size() > 1 ? words[1] : "";
    if (kind == "collective") info.collectives.emplace_back();
    for (std::size_t i = 2; i < words.size(); ++i) {
      const std::size_t equals = words[i].find('=');
      const std::string key = words[i].substr(0, equals);
      const std::string value = equals == std::string::npos ? "" : words[i].substr(equals + 1);
      try {
        if (kind == "setting") {
          info.setting[key] = std::stod(value);
        } else if (kind == "collective") {
          info.SetCollective(key, value);
        } else {
          info.Set(key, value);
        }
      } catch (const std::logic_error&) {  // also what std::stod throws
        throw std::runtime_error("line " + std::to_string(number) + ": '" + words[i] +
                                 "' is no key=value of a line '#! " + kind + "'");
      }
    }
  }
  return info;
}

Outputs::Outputs(const std::string& folder, const RunInfo& info,
                 const ::dcqcn::Simulation& simulation)
    : m_folder(folder), m_info(info), m_simulation(simulation), m_rounds(info.collectives) {
  std::filesystem::create_directories(folder);
  m_flows = Open("flows.csv");
  m_intervals = Open("intervals.csv");
  m_flows << "src,dst,bytes,start_ns,fct_ns,ideal_fct_ns\n";
  m_intervals << "i,start_ns,end_ns,utility,o_tp,o_rtt,o_pfc,idle,throughput_bps,rtt_mean_ns,"
                 "pause_ns_mean,pauses,marks,cnps,drops,retransmitted_packets,packet_hops,"
                 "max_queue_bytes,active_flows,finished_flows,elephants,potential_elephants,mice\n";
  if (!m_rounds.Empty()) {
    m_collectives = Open("collectives.csv");
    m_collectives << Rounds::Header();
  }
  const std::pair<const char*, int64_t> bins[] = {
      {"0-1KB", 0},           {"1KB-10KB", 1'000},     {"10KB-100KB", 10'000},
      {"100KB-1MB", 100'000}, {"1MB-10MB", 1'000'000}, {"10MB-", 10'000'000}};
  for (std::size_t i = 0; i < std::size(bins); ++i) {
    const int64_t high = i + 1 < std::size(bins) ? bins[i + 1].second : kNoLimit;
    m_bins.push_back({bins[i].first, bins[i].second, high, {}});
  }
  m_bins.push_back({"all", 0, kNoLimit, {}});
  for (SizeBin& bin : m_bins)
    bin.classes.assign(static_cast<std::size_t>(kTop * kClassesPerE) + 1, 0);
}

std::ofstream Outputs::Open(const std::string& name) const {
  std::ofstream file(m_folder + "/" + name);
  if (!file) throw std::runtime_error(m_folder + "/" + name + " cannot be written");
  return file;
}

std::vector<double> Outputs::DevicePauses(const ::dcqcn::IntervalData& data) const {
  const ::dcqcn::Topology& t = m_simulation.topology();
  std::vector<double> pauses(static_cast<std::size_t>(t.nodes()));
  for (int p = 0; p < t.port_count(); ++p) {
    pauses[static_cast<std::size_t>(t.port(p).node)] +=
        data.ports[static_cast<std::size_t>(p)].pause;
  }
  for (int n = 0; n < t.nodes(); ++n) {
    pauses[static_cast<std::size_t>(n)] /= std::max(1, t.degree(n));
  }
  return pauses;
}

// the utility of PARALEON (ICNP'24) eq. 1, as dcqcn_gym.core.utility defines its terms
Outputs::Judged Outputs::Judge(const ::dcqcn::IntervalData& data) const {
  const ::dcqcn::Topology& t = m_simulation.topology();
  const double seconds = static_cast<double>(data.end - data.start) * 1e-12;
  Judged j;
  std::vector<double> shares, active;
  bool sent = data.log.totals.data_packets > 0;
  for (int h = 0; h < t.hosts(); ++h) {
    const double rate = 8e12 / static_cast<double>(t.port(h).ps_per_byte);
    const double bytes =
        static_cast<double>(data.ports[static_cast<std::size_t>(h)].counters.tx_bytes);
    const double share = std::min(bytes / (rate * (seconds / 8.0)), 1.0);
    if (share > 0) shares.push_back(share);
    if (share >= m_info.active_share) active.push_back(share);
  }
  sent = sent && !shares.empty();
  j.idle = !sent && data.active_flows == 0;
  if (j.idle) return j;
  j.tp = Mean(active.empty() ? shares : active);
  std::vector<double> ratios;
  for (const ::dcqcn::RttSum& r : data.log.rtts) {
    if (r.count == 0) continue;
    const double mean = static_cast<double>(r.sum) / static_cast<double>(r.count);
    ratios.push_back(std::min(static_cast<double>(r.base) / std::max(mean, 1.0), 1.0));
  }
  j.rtt = ratios.empty() ? (sent ? 1.0 : 0.0) : Mean(ratios);
  std::vector<double> pauses = DevicePauses(data);
  if (m_info.pfc_over_paused) {
    pauses.clear();
    for (const ::dcqcn::PortReport& p : data.ports) {
      if (p.pause > 0) pauses.push_back(p.pause);
    }
  }
  const double share = Mean(pauses) / static_cast<double>(data.end - data.start);
  j.pfc = std::clamp(1.0 - share, 0.0, 1.0);
  j.utility = m_info.weights[0] * j.tp + m_info.weights[1] * j.rtt + m_info.weights[2] * j.pfc;
  return j;
}

void Outputs::CountSlowdown(int64_t bytes, double slowdown) {
  const double log = std::clamp(std::log(std::max(slowdown, 1.0)), 0.0, kTop);
  for (SizeBin& bin : m_bins) {
    if (bytes < bin.low || bytes >= bin.high) continue;
    ++bin.classes[static_cast<std::size_t>(log * kClassesPerE)];
    ++bin.count;
    bin.sum += slowdown;
    bin.largest = std::max(bin.largest, slowdown);
  }
}

void Outputs::Add(const ::dcqcn::IntervalData& data) {
  const Judged j = Judge(data);
  const ::dcqcn::Totals& totals = data.log.totals;
  for (const ::dcqcn::FinishedFlow& f : data.log.finished) {
    m_flows << f.src << ',' << f.dst << ',' << f.bytes << ',' << Nanoseconds(f.start) << ','
            << Nanoseconds(f.fct) << ',' << Nanoseconds(f.ideal) << '\n';
    if (!m_rounds.Empty()) m_collectives << m_rounds.Add(f);
    CountSlowdown(f.bytes, static_cast<double>(f.fct) / static_cast<double>(f.ideal));
    m_firstStart = m_firstStart < 0 ? f.start : std::min(m_firstStart, f.start);
    m_lastFinish = std::max(m_lastFinish, f.start + f.fct);
  }
  double rtt_sum = 0;
  uint64_t rtt_count = 0;
  for (const ::dcqcn::RttSum& r : data.log.rtts) {
    rtt_sum += static_cast<double>(r.sum);
    rtt_count += r.count;
  }
  int64_t queue = 0;
  for (const ::dcqcn::PortReport& p : data.ports) {
    queue = std::max(queue, p.counters.max_queue);
    m_portPause += p.pause;
  }
  const double pause = Mean(DevicePauses(data));
  const double seconds = static_cast<double>(data.end - data.start) * 1e-12;
  m_intervals << m_count << ',' << Nanoseconds(data.start) << ',' << Nanoseconds(data.end) << ','
              << Repr(j.utility) << ',' << Repr(j.tp) << ',' << Repr(j.rtt) << ',' << Repr(j.pfc)
              << ',' << (j.idle ? 1 : 0) << ','
              << Repr(static_cast<double>(totals.delivered * 8) / seconds) << ','
              << (rtt_count ? Repr(rtt_sum / static_cast<double>(rtt_count) / 1000) : "") << ','
              << Repr(pause / 1000) << ',' << totals.pauses << ',' << totals.marks << ','
              << totals.cnps << ',' << totals.drops << ',' << totals.retransmitted << ','
              << totals.hops << ',' << queue << ',' << data.active_flows << ','
              << data.log.finished.size() << ',' << Repr(data.fsd.elephants) << ','
              << Repr(data.fsd.potential) << ',' << Repr(data.fsd.mice) << '\n';
  if (!m_flows || !m_intervals || !m_collectives)
    throw std::runtime_error(m_folder + " cannot be written");
  ++m_count;
  m_end = data.end;
  m_finished += static_cast<int64_t>(data.log.finished.size());
  m_active = data.active_flows;
  m_busy += j.idle ? 0 : 1;
  m_utility += j.idle ? 0 : j.utility;
  m_devicePause += pause;
  m_largestQueue = std::max(m_largestQueue, queue);
  m_totals.add(totals);
}

std::string Outputs::Slowdowns() const {
  std::ostringstream out;
  for (std::size_t i = 0; i < m_bins.size(); ++i) {
    const SizeBin& bin = m_bins[i];
    const bool any = bin.count > 0;
    const auto percentile = [&](double percent) {
      const int64_t rank = std::max<int64_t>(
          1, static_cast<int64_t>(std::ceil(static_cast<double>(bin.count) * percent / 100)));
      int64_t below = 0;
      std::size_t at = 0;
      while (any && (below += bin.classes[at]) < rank) ++at;
      return Optional(
          any, std::min(std::exp((static_cast<double>(at) + 0.5) / kClassesPerE), bin.largest));
    };
    out << (i ? ",\n" : "") << "    \"" << bin.key << "\": {\n      \"count\": " << bin.count
        << ",\n      \"mean\": "
        << Optional(any, bin.sum / static_cast<double>(std::max<int64_t>(1, bin.count)))
        << ",\n      \"p50\": " << percentile(50) << ",\n      \"p99\": " << percentile(99)
        << ",\n      \"p99.9\": " << percentile(99.9)
        << ",\n      \"max\": " << Optional(any, bin.largest) << "\n    }";
  }
  return out.str();
}

void Outputs::Finish(uint64_t seed, const std::vector<double>& setting_si, double wall_s) {
  std::ofstream summary = Open("summary.json");
  summary << "{\n  \"scenario\": \"" << m_info.name << "\",\n  \"seed\": " << seed
          << ",\n  \"version\": \"" << m_info.version << "\",\n  \"setting\": {";
  std::vector<::dcqcn::KnobRow> rows = ::dcqcn::scheme_knobs().front().nic;
  rows.insert(rows.end(), ::dcqcn::ecn_knobs().begin(), ::dcqcn::ecn_knobs().end());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double value = setting_si[i] / rows[i].unit.si_per_unit;
    summary << (i ? "," : "") << "\n    \"" << rows[i].name
            << "\": " << Repr(rows[i].integer ? std::round(value) : value);
  }
  const auto line = [&summary](const char* key, const std::string& value) {
    summary << ",\n  \"" << key << "\": " << value;
  };
  summary << "\n  }";
  line("intervals", std::to_string(m_count));
  line("simulated_ns", Repr(static_cast<double>(m_end) / 1000));
  line("finished_flows", std::to_string(m_finished));
  line("unfinished_flows", std::to_string(m_active));
  line("makespan_ns",
       Optional(m_firstStart >= 0, static_cast<double>(m_lastFinish - m_firstStart) / 1000));
  line("mean_utility",
       Optional(m_busy > 0, m_utility / static_cast<double>(std::max<int64_t>(1, m_busy))));
  line("pause_ns_all_ports", Repr(m_portPause / 1000));
  line("pause_ns_mean_device", Repr(m_devicePause / 1000));
  line("max_queue_bytes", std::to_string(m_largestQueue));
  const std::pair<const char*, uint64_t> counts[] = {
      {"delivered_bytes", static_cast<uint64_t>(m_totals.delivered)},
      {"data_packets", m_totals.data_packets},
      {"acks", m_totals.acks},
      {"pauses", m_totals.pauses},
      {"marks", m_totals.marks},
      {"cnps", m_totals.cnps},
      {"drops", m_totals.drops},
      {"retransmitted_packets", m_totals.retransmitted},
      {"packet_hops", m_totals.hops}};
  for (const auto& [key, value] : counts) line(key, std::to_string(value));
  summary << ",\n  \"slowdown\": {\n" << Slowdowns() << "\n  }";
  line("collectives", m_rounds.Summary());
  summary << "\n}\n";
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  const double cpu = seconds(used.ru_utime) + seconds(used.ru_stime);
  std::ofstream timing = Open("timing.json");
  timing << "{\n  \"cpu_s\": " << Repr(cpu) << ",\n  \"wall_s\": " << Repr(wall_s)
         << ",\n  \"peak_memory_bytes\": " << used.ru_maxrss * 1024
         << ",\n  \"packet_hops_per_cpu_s\": "
         << Optional(cpu > 0, static_cast<double>(m_totals.hops) / cpu) << "\n}\n";
  m_flows.close();
  m_intervals.close();
  if (!m_rounds.Empty()) m_collectives.close();
  summary.close();
  timing.close();
  if (!summary || !timing || !m_flows || !m_intervals || !m_collectives) {
    throw std::runtime_error(m_folder + " cannot be written");
  }
}

}  // namespace ns3
