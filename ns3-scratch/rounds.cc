// SPDX-License-Identifier: GPL-2.0-only
#include "rounds.h"

#include <algorithm>
#include <sstream>

#include "outputs.h"

namespace ns3 {

double Collective::BusFactor() const {
  const double transfers = static_cast<double>((kind == "all-reduce" ? 2 : 1) * (ranks - 1));
  return transfers / static_cast<double>(ranks);
}

Rounds::Rounds(const std::vector<Collective>& collectives) {
  for (const Collective& c : collectives) m_progress[c.workload].collective = c;
}

const char* Rounds::Header() {
  return "workload,collective,round,ranks,bytes,start_ns,time_ns,algbw_gbytes_per_s,"
         "busbw_gbytes_per_s\n";
}

std::string Rounds::Add(const ::dcqcn::FinishedFlow& flow) {
  const auto at = m_progress.find(flow.workload);
  if (at == m_progress.end()) return {};
  Progress& p = at->second;
  p.start = p.flows == 0 ? flow.start : std::min(p.start, flow.start);
  p.end = std::max(p.end, flow.start + flow.fct);
  const Collective& c = p.collective;
  if (++p.flows < c.flows) return {};
  p.flows = 0;
  const int64_t took = p.end - p.start;
  const double algbw = static_cast<double>(c.bytes) / (static_cast<double>(took) * 1e-12);
  std::ostringstream line;
  line << c.workload << ',' << c.kind << ',' << p.rounds << ',' << c.ranks << ',' << c.bytes << ','
       << Nanoseconds(p.start) << ',' << Nanoseconds(took) << ',' << Repr(algbw * 1e-9) << ','
       << Repr(algbw * c.BusFactor() * 1e-9) << '\n';
  p.shortest = p.rounds == 0 ? took : std::min(p.shortest, took);
  p.longest = std::max(p.longest, took);
  p.total += took;
  ++p.rounds;
  return line.str();
}

std::string Rounds::Summary() const {
  std::ostringstream out;
  out << '[';
  for (const auto& [workload, p] : m_progress) {
    const Collective& c = p.collective;
    const bool seen = p.rounds > 0;
    const double total = static_cast<double>(p.total), rounds = static_cast<double>(p.rounds);
    const double algbw = static_cast<double>(c.bytes * p.rounds) / (total * 1e-12) * 1e-9;
    const double cycle = static_cast<double>(p.total + p.rounds * c.pause_ps) * 1e-12;
    const auto line = [&](const char* key, double value) {
      out << ",\n      \"" << key << "\": " << (seen ? Repr(value) : "null");
    };
    out << (out.tellp() > 1 ? ",\n" : "\n") << "    {\n      \"workload\": " << workload
        << ",\n      \"collective\": \"" << c.kind << "\",\n      \"ranks\": " << c.ranks
        << ",\n      \"bytes\": " << c.bytes << ",\n      \"rounds\": " << p.rounds;
    line("time_ns_mean", total / rounds / 1000);
    line("time_ns_min", static_cast<double>(p.shortest) / 1000);
    line("time_ns_max", static_cast<double>(p.longest) / 1000);
    line("algbw_gbytes_per_s", algbw);
    line("busbw_gbytes_per_s", algbw * c.BusFactor());
    line("iterations_per_s", rounds / cycle);
    out << "\n    }";
  }
  out << (m_progress.empty() ? "]" : "\n  ]");
  return out.str();
}

}  // namespace ns3
