// SPDX-License-Identifier: GPL-2.0-only
#include "outputs.h"

#include <sys/resource.h>

#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "json-line.h"

namespace ns3 {
namespace {

std::vector<std::string> Words(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// picoseconds as exact decimal nanoseconds
std::string Nanoseconds(int64_t ps) {
  std::string text = std::to_string(ps / 1000);
  if (ps % 1000 == 0) return text;
  std::string rest = std::to_string(1000 + ps % 1000).substr(1);
  rest.erase(rest.find_last_not_of('0') + 1);
  return text + "." + rest;
}

void AddTotals(JsonLine& line, const ::dcqcn::Totals& t) {
  line.Add("delivered_bytes", t.delivered);
  line.Add("data_packets", t.data_packets);
  line.Add("acks", t.acks);
  line.Add("cnps", t.cnps);
  line.Add("marks", t.marks);
  line.Add("drops", t.drops);
  line.Add("retransmitted_packets", t.retransmitted);
  line.Add("pauses", t.pauses);
  line.Add("resumes", t.resumes);
  line.Add("packet_hops", t.hops);
}

void AddPorts(JsonLine& line, const ::dcqcn::Topology& t,
              const std::vector<::dcqcn::PortReport>& ports) {
  using ::dcqcn::PortReport;
  std::vector<int> numbers(ports.size());
  for (std::size_t p = 0; p < numbers.size(); ++p) numbers[p] = static_cast<int>(p);
  const std::vector<int> hosts(numbers.begin(), numbers.begin() + t.hosts());
  const auto rate = [&t](int p) { return 8e12 / static_cast<double>(t.port(p).ps_per_byte); };
  line.Column("host_tx_bytes", hosts,
              [&ports](int h) { return ports[static_cast<std::size_t>(h)].counters.tx_bytes; });
  line.Column("host_rate_bps", hosts, rate);
  line.Column("port_node", numbers, [&t](int p) { return t.port(p).node; });
  line.Column("port_rate_bps", numbers, rate);
  const auto column = [&](const char* name, auto get) { line.Column(name, ports, get); };
  column("port_pause_ps", [](const PortReport& p) { return p.pause; });
  column("port_tx_bytes", [](const PortReport& p) { return p.counters.tx_bytes; });
  column("port_tx_packets", [](const PortReport& p) { return p.counters.tx_packets; });
  column("port_marked_packets", [](const PortReport& p) { return p.counters.marked_packets; });
  column("port_marked_bytes", [](const PortReport& p) { return p.counters.marked_bytes; });
  column("port_queue_bytes", [](const PortReport& p) { return p.queue; });
  column("port_max_queue_bytes", [](const PortReport& p) { return p.counters.max_queue; });
  column("port_dropped_packets", [](const PortReport& p) { return p.counters.dropped; });
  column("port_pfc_sent", [](const PortReport& p) { return p.counters.pfc_sent; });
  column("port_pfc_received", [](const PortReport& p) { return p.counters.pfc_received; });
}

void AddRoundTrips(JsonLine& line, const std::vector<::dcqcn::RttSum>& rtts) {
  using ::dcqcn::RttSum;
  line.Column("rtt_src", rtts, [](const RttSum& r) { return r.pair >> 32; });
  line.Column("rtt_dst", rtts, [](const RttSum& r) { return r.pair & 0xFFFFFFFFu; });
  line.Column("rtt_count", rtts, [](const RttSum& r) { return r.count; });
  line.Column("rtt_sum_ps", rtts, [](const RttSum& r) { return r.sum; });
  line.Column("rtt_base_ps", rtts, [](const RttSum& r) { return r.base; });
}

void AddSizes(JsonLine& line, const ::dcqcn::FsdReport& f) {
  line.Open("fsd");
  line.Add("elephants", f.elephants);
  line.Add("potential", f.potential);
  line.Add("mice", f.mice);
  line.Add("weighted_elephants", f.weighted_elephants);
  line.Add("weighted_mice", f.weighted_mice);
  line.Column("bins", f.bins, [](double n) { return n; });
  line.Add("kl", f.kl);
  line.Add("triggered", f.triggered);
  line.Add("monitor_bytes", f.monitor_bytes);
  line.Add("known", f.known);
  line.Add("data_plane_bytes", f.data_plane_bytes);
  line.Add("control_plane_bytes", f.control_plane_bytes);
  line.Add("tracked_flows", f.tracked_flows);
  line.Add("untracked_flows", f.untracked_flows);
  line.End();
}

// what schemes count beside cuts and increases, if they do
void AddCounters(JsonLine& line, const ::dcqcn::IntervalData& data) {
  const auto own = data.own_counters();
  if (own.empty()) return;
  line.Open("scheme_counters");
  for (const std::string_view name : own) line.Add(name.data(), data.counted(name));
  line.End();
}

void AddFinished(JsonLine& line, const std::vector<::dcqcn::FinishedFlow>& flows) {
  using ::dcqcn::FinishedFlow;
  const auto column = [&](const char* name, auto get) { line.Column(name, flows, get); };
  line.Open("finished");
  column("src", [](const FinishedFlow& f) { return f.src; });
  column("dst", [](const FinishedFlow& f) { return f.dst; });
  column("ordinal", [](const FinishedFlow& f) { return f.ordinal; });
  column("bytes", [](const FinishedFlow& f) { return f.bytes; });
  column("start_ps", [](const FinishedFlow& f) { return f.start; });
  column("fct_ps", [](const FinishedFlow& f) { return f.fct; });
  column("ideal_fct_ps", [](const FinishedFlow& f) { return f.ideal; });
  column("workload", [](const FinishedFlow& f) { return f.workload; });
  line.End();
}

}  // namespace

void RunInfo::Set(const std::string& key, const std::string& value) {
  if (key == "name") {
    name = value;
  } else if (key == "interval_ps") {
    interval_ps = std::stoll(value);
  } else if (key == "intervals") {
    intervals = std::stoll(value);
  } else {
    throw std::invalid_argument("unknown key");
  }
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
    for (std::size_t i = 2; i < words.size(); ++i) {
      const std::size_t equals = words[i].find('=');
      const std::string key = words[i].substr(0, equals);
      const std::string value = equals == std::string::npos ? "" : words[i].substr(equals + 1);
      try {
        if (kind == "setting") {
          info.setting[key] = std::stod(value);
        } else if (kind == "run") {
          info.Set(key, value);
        } else {
          throw std::invalid_argument("unknown kind");
        }
      } catch (const std::logic_error&) {  // also what std::stod throws
        throw std::runtime_error("line " + std::to_string(number) + ": '" + words[i] +
                                 "' is no key=value of a line '#! " + kind + "'");
      }
    }
  }
  return info;
}

Outputs::Outputs(const std::string& folder, const ::dcqcn::Simulation& simulation)
    : m_folder(folder), m_simulation(simulation) {
  std::filesystem::create_directories(folder);
  m_reports = Open("reports.jsonl");
  m_flows = Open("flows.csv");
  m_flows << "src,dst,bytes,start_ns,fct_ns,ideal_fct_ns\n";
}

std::ofstream Outputs::Open(const std::string& name) const {
  std::ofstream file(m_folder + "/" + name);
  if (!file) throw std::runtime_error(m_folder + "/" + name + " cannot be written");
  return file;
}

// the fields of dcqcn_gym.core.interval.IntervalReport
void Outputs::Add(const ::dcqcn::IntervalData& data) {
  JsonLine line(m_reports);
  line.Add("index", m_count++);
  line.Add("start_ps", data.start);
  line.Add("end_ps", data.end);
  AddTotals(line, data.log.totals);
  AddPorts(line, m_simulation.topology(), data.ports);
  AddRoundTrips(line, data.log.rtts);
  line.Add("rate_cuts", data.counted("cuts"));
  line.Add("rate_increases", data.counted("increases"));
  AddCounters(line, data);
  line.Add("active_flows", data.active_flows);
  if (data.unlimited_flows > 0) line.Add("unlimited_flows", data.unlimited_flows);
  AddSizes(line, data.fsd);
  AddFinished(line, data.log.finished);
  line.End();
  m_reports << '\n';
  AddFlows(data);
  if (!m_reports || !m_flows) throw std::runtime_error(m_folder + " cannot be written");
}

void Outputs::AddFlows(const ::dcqcn::IntervalData& data) {
  for (const ::dcqcn::FinishedFlow& f : data.log.finished) {
    m_flows << f.src << ',' << f.dst << ',' << f.bytes << ',' << Nanoseconds(f.start) << ','
            << Nanoseconds(f.fct) << ',' << Nanoseconds(f.ideal) << '\n';
  }
}

void Outputs::Finish(const RunDone& done, double wall_s) {
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  std::ofstream run = Open("run.json");
  JsonLine line(run);
  line.Add("scenario", done.name);
  line.Add("scheme", done.scheme);
  line.Add("seed", done.seed);
  line.Open("setting");
  for (const auto& [name, value] : done.setting_si) line.Add(name.c_str(), value);
  line.End();
  line.Add("cpu_s", seconds(used.ru_utime) + seconds(used.ru_stime));
  line.Add("wall_s", wall_s);
  line.Add("peak_memory_bytes", used.ru_maxrss * 1024);
  line.End();
  run << '\n';
  m_reports.close();
  m_flows.close();
  run.close();
  if (!m_reports || !m_flows || !run) throw std::runtime_error(m_folder + " cannot be written");
}

}  // namespace ns3
