// SPDX-License-Identifier: GPL-2.0-only
#include "outputs.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "json-line.h"
#include "sim/report_fields.hpp"

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

// a table of a report: a column for each field of `fields`
template <typename Fields, typename Rows>
void AddColumns(JsonLine& line, const Fields& fields, const Rows& rows) {
  ::dcqcn::for_each_field(fields, [&](const auto& field) {
    line.Column(::dcqcn::last_name(field.name), rows, field.get);
  });
}

// the first ports of a report
std::vector<::dcqcn::PortRow> PortRows(const ::dcqcn::Topology& topology,
                                       const std::vector<::dcqcn::PortReport>& ports, int count) {
  std::vector<::dcqcn::PortRow> rows;
  for (int p = 0; p < count; ++p) {
    rows.push_back({topology, p, ports[static_cast<std::size_t>(p)]});
  }
  return rows;
}

void AddSizes(JsonLine& line, const ::dcqcn::FsdReport& f) {
  line.Open("fsd");
  ::dcqcn::for_each_field(::dcqcn::kFsdFields, [&](const auto& field) {
    const auto& value = field.get(f);
    const char* name = ::dcqcn::last_name(field.name);
    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>) {
      line.Add(name, value);
    } else {
      line.Column(name, value, [](double n) { return n; });
    }
  });
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

// the flows that have not finished, by source and ordinal: fields of LiveFlows
void AddUnfinished(JsonLine& line, const ::dcqcn::TransportLayer& transport) {
  constexpr std::array kNames{"src",      "ordinal",      "dst",     "bytes",
                              "start_ps", "ideal_fct_ps", "workload"};
  using Row = std::array<int64_t, kNames.size()>;
  std::vector<Row> rows;
  transport.for_each_live([&rows](const ::dcqcn::Qp& q, const ::dcqcn::Message& m) {
    if (m.bytes == ::dcqcn::kUnlimited) return;  // it cannot finish
    rows.push_back({q.src, m.ordinal, q.dst, m.bytes, m.start, m.ideal, m.workload});
  });
  std::sort(rows.begin(), rows.end());
  line.Open("unfinished");
  for (std::size_t k = 0; k < kNames.size(); ++k) {
    line.Column(kNames[k], rows, [k](const Row& row) { return row[k]; });
  }
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

void Outputs::Add(const ::dcqcn::IntervalData& data) {
  JsonLine line(m_reports);
  const auto add = [&line](const auto& fields, const auto& row) {
    ::dcqcn::for_each_field(fields,
                            [&](const auto& field) { line.Add(field.name, field.get(row)); });
  };
  add(::dcqcn::kIntervalFields, data);
  add(::dcqcn::kTotalsFields, data.log.totals);
  const ::dcqcn::Topology& topology = m_simulation.topology();
  AddColumns(line, ::dcqcn::kHostFields, PortRows(topology, data.ports, topology.hosts()));
  AddColumns(line, ::dcqcn::kPortFields, PortRows(topology, data.ports, topology.port_count()));
  AddColumns(line, ::dcqcn::kRttFields, data.log.rtts);
  AddCounters(line, data);
  if (data.unlimited_flows > 0) line.Add("unlimited_flows", data.unlimited_flows);
  if (!data.log.job_spans.empty()) {
    line.Rows("job_spans", data.log.job_spans, ::dcqcn::kJobSpanFields);
  }
  AddSizes(line, data.fsd);
  line.Open("finished");
  AddColumns(line, ::dcqcn::kFinishedFields, data.log.finished);
  line.End();
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
  AddUnfinished(line, m_simulation.transport());
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
