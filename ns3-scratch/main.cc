// SPDX-License-Identifier: GPL-2.0-only
// The DCQCN network on ns-3 as a program of its own. Inside ns-3:
//   ./ns3 run "dcqcn-ns3 --scenario=FILE --seed=1 --out=DIR"
// FILE comes from `dcqcn-gym scenarios NAME --out FILE`. Knobs are attributes:
//   --ns3::RdmaHost::RpgAiRate=50e6 --ns3::PfcDevice::Kmin=400e3
#include <chrono>
#include <fstream>
#include <iostream>
#include <sstream>

#include "knob-attributes.h"
#include "model/settings/knob_tables.hpp"
#include "ns3-engine.h"
#include "ns3/command-line.h"
#include "ns3/config.h"
#include "ns3/double.h"
#include "outputs.h"

namespace {

struct Options {
  std::string scenario, out, pcap;
  uint64_t seed = 1;
  int64_t intervals = 0, intervalPs = 0;
};

void Parse(Options& o, int argc, char* argv[]) {
  ns3::CommandLine cmd("main.cc");
  cmd.Usage(
      "Simulates DCQCN traffic and writes reports.jsonl, flows.csv and run.json; "
      "`dcqcn-gym simulate --reports FOLDER` makes tables and a summary of them.");
  cmd.AddValue("scenario", "Compiled scenario: dcqcn-gym scenarios NAME --out FILE", o.scenario);
  cmd.AddValue("seed", "Seed of the traffic", o.seed);
  cmd.AddValue("intervals", "Monitor intervals to run; 0: as many as the scenario says",
               o.intervals);
  cmd.AddValue("intervalPs", "Length of an interval in ps; 0: as the scenario says", o.intervalPs);
  cmd.AddValue("out", "Folder of the results", o.out);
  cmd.AddValue("pcap", "Prefix of capture files, one per port; headers are then built", o.pcap);
  cmd.Parse(argc, argv);
}

std::string Read(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read the scenario '" + path + "'; give --scenario");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// the scenario's initial setting becomes the default of the attributes
void SetDefaults(const ns3::RunInfo& info) {
  const auto set = [&info](const std::string& type, std::span<const ::dcqcn::KnobRow> rows) {
    for (const ::dcqcn::KnobRow& row : rows) {
      const auto at = info.setting.find(row.name);
      if (at == info.setting.end()) continue;
      ns3::Config::SetDefault(type + "::" + ns3::KnobAttribute(row), ns3::DoubleValue(at->second));
    }
  };
  set("ns3::RdmaHost", ::dcqcn::scheme_knobs().front().nic);
  set("ns3::PfcDevice", ::dcqcn::ecn_knobs());
  set("ns3::PfcDevice", ::dcqcn::pfc_knobs());
}

int Run(int argc, char* argv[]) {
  Options o;
  Parse(o, argc, argv);
  const std::string text = Read(o.scenario);
  const ns3::RunInfo info = ns3::RunInfo::Parse(text);
  SetDefaults(info);
  Parse(o, argc, argv);  // again: what the command line says of attributes wins
  if (o.intervals < 0 || o.intervalPs < 0) {
    throw std::runtime_error("--intervals=" + std::to_string(o.intervals) +
                             ", --intervalPs=" + std::to_string(o.intervalPs) +
                             ": expected at least 1, or 0 for what the scenario says");
  }

  const auto start = std::chrono::steady_clock::now();
  ns3::Ns3Engine* engine = nullptr;
  ::dcqcn::Simulation simulation(text, o.seed, [&engine](const ::dcqcn::World& world) {
    auto made = std::make_unique<ns3::Ns3Engine>(world);
    engine = made.get();
    return made;
  });
  if (!o.pcap.empty()) engine->EnablePcap(o.pcap);
  const std::vector<double> rows = engine->NicRows(info.setting);
  const std::size_t hosts = static_cast<std::size_t>(simulation.topology().hosts());
  simulation.apply({rows.data(), hosts, rows.size() / hosts}, engine->EcnAttributes());
  ns3::Outputs outputs(o.out.empty() ? "." : o.out, simulation);
  const int64_t count = o.intervals > 0 ? o.intervals : info.intervals;
  const int64_t length = o.intervalPs > 0 ? o.intervalPs : info.interval_ps;
  for (int64_t i = 0; i < count; ++i) {
    simulation.advance(simulation.now() + length);
    outputs.Add(simulation.report());
  }
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  outputs.Finish({info.name, engine->Schemes(), o.seed, engine->SettingSi(info.setting)},
                 wall.count());
  return 0;
}

}  // namespace

int main(int argc, char* argv[]) {
  ns3::Time::SetResolution(ns3::Time::PS);
  try {
    return Run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 2;
  }
}
