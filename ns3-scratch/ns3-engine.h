// SPDX-License-Identifier: GPL-2.0-only
// ns-3 as an engine of the shared model: builds nodes, devices and channels, runs the simulator.
#ifndef DCQCN_NS3_ENGINE_H
#define DCQCN_NS3_ENGINE_H

#include <map>
#include <string>
#include <vector>

#include "ns3/event-id.h"
#include "pfc-switch.h"
#include "rdma-host.h"
#include "sim/engine.hpp"

namespace ns3 {

/// One at a time in a process: ns-3's simulator is a singleton.
class Ns3Engine : public ::dcqcn::Engine {
 public:
  explicit Ns3Engine(const ::dcqcn::World& world);
  ~Ns3Engine() override;

  void run(::dcqcn::Time until) override;
  void settings_changed(::dcqcn::Time now) override;
  void set_ecn(const std::vector<::dcqcn::EcnSetting>& per_port) override;
  void report_ports(::dcqcn::Time now, std::vector<::dcqcn::PortReport>& out) override;
  ::dcqcn::PortSample sample_port(int port, ::dcqcn::Time now) const override;

  /// Captures every frame of every port to PREFIX-NODE-PORT.pcap. Throws std::runtime_error.
  void EnablePcap(const std::string& prefix);
  /// The settings that the attributes of hosts and ports hold.
  /// A row per host, as Simulation::apply takes them: knobs of DCQCN from the attributes, those of
  /// another scheme from `more`, or else their defaults.
  std::vector<double> NicRows(const std::map<std::string, double>& more) const;
  std::vector<::dcqcn::EcnSetting> EcnAttributes() const;
  /// The schemes of the hosts, with commas.
  std::string Schemes() const;
  /// Every knob in SI: of the first host of each scheme, and of the first port.
  std::vector<std::pair<std::string, double>> SettingSi(
      const std::map<std::string, double>& more) const;

 private:
  void Build();
  void JoinPorts();
  void SetBuffers();
  double KnobOf(std::size_t host, const ::dcqcn::KnobRow& knob,
                const std::map<std::string, double>& more) const;
  void ArmFlows();
  void ArmJobs();
  void OnFlows();

  ::dcqcn::World m_world;
  MessageEnds m_messages;
  std::vector<Ptr<RdmaHost>> m_hosts;
  std::vector<Ptr<PfcSwitch>> m_switches;
  std::vector<Ptr<PfcDevice>> m_ports;
  std::vector<::dcqcn::FlowStart> m_starts;
  EventId m_flowEvent;
  int64_t m_flowDue = ::dcqcn::kNever;
};

}  // namespace ns3
#endif
