// Plays jobs with schemes on every native engine, and compares all that can be seen.
#pragma once

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "model/schemes/nic_schemes.hpp"
#include "tests/check.hpp"
#include "tests/fuzz/job.hpp"
#include "tests/fuzz/random_job.hpp"
#include "tests/fuzz/report_fields.hpp"
#include "tests/worlds.hpp"

namespace dcqcn::scheme_play {

using fuzz::Fields;
using fuzz::Job;
using fuzz::Player;

// what one engine makes of a job
struct Outcome {
  std::uint64_t digest = 0;
  std::uint64_t hops = 0;
  std::vector<std::uint64_t> counters;
  std::vector<std::string> trace;

  bool operator==(const Outcome&) const = default;
};

inline std::string told(const SchemeNames& names, const SchemeEvent& e) {
  std::ostringstream out;
  out.precision(17);
  out << names.name << ' ' << names.events[e.what] << ' ' << e.when << ' ' << e.src << ' ' << e.dst;
  for (const double v : e.values) out << ' ' << v;
  return out.str();
}

inline Outcome outcome(const Job& job, const std::string& engine, int splits = 0) {
  Outcome o;
  Player player(job, engine, splits);
  player.simulation().schemes().trace(true);
  for (const std::string& line : job.script) {
    if (!player.play(line)) continue;
    o.digest = Fields(player.report(), player.simulation().topology()).digest(o.digest);
    std::size_t at = 0;
    for (const SchemeReport& scheme : player.report().schemes) {
      for (const std::uint64_t n : scheme.counters) {
        if (o.counters.size() <= at) o.counters.push_back(0);
        o.counters[at++] += n;
      }
    }
  }
  // asked for anew: a player may go on with a copy of the simulation
  for (const auto& [names, events] : player.simulation().schemes().take_trace()) {
    for (const SchemeEvent& e : events) o.trace.push_back(told(*names, e));
  }
  o.hops = player.simulation().totals().hops;
  return o;
}

// the window engine's outcome, which the other engines have to share
inline Outcome same_everywhere(const Job& job) {
  const Outcome window = outcome(job, "window");
  CHECK(window == outcome(job, "event"));
  CHECK(window == outcome(job, "window:300000", 3));
  return window;
}

// Six hosts send to one; 100 Gb/s, a shallow buffer, so that there are marks and pauses.
inline std::string incast(const std::string& lines, const std::string& pfc = worlds::kPfc) {
  std::string text = "dcqcn-gym-scenario 1\nnodes hosts=8 switches=1\nswitch 8 buffer=2000000\n";
  for (int h = 0; h < 8; ++h) {
    text += "link " + std::to_string(h) + " 8 ps_per_byte=80 delay_ps=1000000 headroom=60000\n";
  }
  return text + pfc + lines +
         "workload incast hosts=1,2,3,4,5,6 dst=0 bytes=300000 off_ps=10000000\n"
         "workload permutation hosts=0,1,2,3,4,5,6,7 bytes=200000\nend\n";
}

// `nic` lines for these hosts: `values`, then zeros up to `columns`
inline std::string nic_rows(const std::string& hosts, std::size_t columns,
                            const std::string& values) {
  std::string out;
  std::istringstream in(hosts);
  for (std::string host; std::getline(in, host, ',');) {
    out += "nic " + host + " " + values;
    std::istringstream given(values);
    std::size_t n = 0;
    for (std::string value; given >> value;) ++n;
    for (; n < columns; ++n) out += " 0";
    out += "\n";
  }
  return out;
}

// Plays a random network, lossy ones among them, with this scheme instead of DCQCN; its NICs have
// one of `rows`, and the last one at first. False if the parser refuses the job.
inline bool play_random(std::uint64_t seed, std::uint64_t number, const std::string& scheme,
                        const std::vector<std::string>& rows) {
  Job job = fuzz::random_job(seed, number);
  std::erase_if(job.scenario, [](const std::string& l) { return l.rfind("scheme ", 0) == 0; });
  job.scenario.insert(job.scenario.begin() + 2, "scheme " + scheme);
  for (std::string& line : job.script) {
    if (line.rfind("nic ", 0) != 0) continue;
    line = line.substr(0, line.find(' ', 4)) + " " + rows[number % rows.size()];
  }
  job.script.insert(job.script.begin() + 1, "nic * " + rows.back());
  try {
    same_everywhere(job);
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

// prints totals and flows of a job, for comparison with ns-3
inline int play(const char* file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  const Job job = Job::parse(text.str());
  Player player(job, "window");
  for (const std::string& line : job.script) {
    if (!player.play(line)) continue;
    for (const FinishedFlow& f : player.report().log.finished) {
      std::printf("flow %d %d %lld %lld %lld\n", f.src, f.dst, static_cast<long long>(f.bytes),
                  static_cast<long long>(f.start), static_cast<long long>(f.fct));
    }
  }
  const Totals& t = player.simulation().totals();
  const std::pair<const char*, std::uint64_t> totals[] = {
      {"cnps", t.cnps}, {"marks", t.marks},      {"pauses", t.pauses},
      {"acks", t.acks}, {"packet_hops", t.hops}, {"data_packets", t.data_packets}};
  for (const auto& [name, n] : totals) {
    std::printf("total %s %llu\n", name, static_cast<unsigned long long>(n));
  }
  return 0;
}

}  // namespace dcqcn::scheme_play
