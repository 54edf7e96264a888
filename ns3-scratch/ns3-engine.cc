// SPDX-License-Identifier: GPL-2.0-only
#include "ns3-engine.h"

#include <algorithm>
#include <stdexcept>

#include "model/settings/knob_tables.hpp"
#include "ns3/boolean.h"
#include "ns3/heap-scheduler.h"
#include "ns3/object-factory.h"
#include "ns3/pcap-file-wrapper.h"
#include "ns3/pointer.h"
#include "ns3/simulator.h"
#include "sim/port_reports.hpp"

namespace ns3 {

using ::dcqcn::kNever;

namespace {

bool g_engineExists = false;

// Ethernet as in <pcap/dlt.h>
constexpr uint32_t kDltEthernet = 1;

}  // namespace

Ns3Engine::Ns3Engine(const ::dcqcn::World& world) : m_world(world) {
  if (g_engineExists) {
    throw std::runtime_error("ns-3 runs one simulation per process; close the other one first");
  }
  g_engineExists = true;
  if (Time::GetResolution() != Time::PS) Time::SetResolution(Time::PS);
  ObjectFactory scheduler;
  scheduler.SetTypeId(HeapScheduler::GetTypeId());
  Simulator::SetScheduler(scheduler);
  Build();
}

Ns3Engine::~Ns3Engine() {
  m_ports.clear();
  m_hosts.clear();
  m_switches.clear();
  Simulator::Destroy();
  g_engineExists = false;
}

void Ns3Engine::Build() {
  const ::dcqcn::Topology& t = m_world.topology;
  const ::dcqcn::TransportLayer& transport = m_world.transport;
  const bool collect = transport.lossy() || transport.cnp_delay() > 0 || transport.ticks() ||
                       m_world.source.jobs().any();
  std::vector<Ptr<DcqcnNode>> nodes;
  for (int n = 0; n < t.nodes(); ++n) {
    if (n < t.hosts()) {
      m_hosts.push_back(CreateObject<RdmaHost>());
      m_hosts.back()->SetFinishedCallback([this] { ArmFlows(); });
      m_hosts.back()->SetWokenCallback([this] { ArmJobs(); });
      nodes.push_back(m_hosts.back());
    } else {
      m_switches.push_back(CreateObject<PfcSwitch>());
      nodes.push_back(m_switches.back());
    }
    nodes.back()->Attach(&m_world, &m_messages, collect);
    if (nodes.back()->GetId() != static_cast<uint32_t>(n)) {
      throw std::runtime_error("the scenario's network must be the only one in the process");
    }
  }
  for (int p = 0; p < t.port_count(); ++p) {
    const ::dcqcn::PortSpec& spec = t.port(p);
    Ptr<PfcDevice> device = CreateObject<PfcDevice>();
    device->Install(nodes[static_cast<std::size_t>(spec.node)], static_cast<uint32_t>(spec.index),
                    static_cast<uint32_t>(p), spec.ps_per_byte);
    device->SeedMarking(m_world.seed);
    nodes[static_cast<std::size_t>(spec.node)]->AddPort(device);
    m_ports.push_back(device);
  }
  JoinPorts();
  SetBuffers();
  for (const Ptr<RdmaHost>& host : m_hosts) host->ArmTick();
  ArmJobs();
}

void Ns3Engine::JoinPorts() {
  const ::dcqcn::Topology& t = m_world.topology;
  for (int p = 0; p < t.port_count(); ++p) {
    const int peer = t.port(p).peer_port;
    m_ports[static_cast<std::size_t>(p)]->SetPeer(
        PeekPointer(m_ports[static_cast<std::size_t>(peer)]));
    if (peer < p) continue;
    Ptr<PfcChannel> channel = CreateObject<PfcChannel>();
    channel->SetAttribute("Delay", TimeValue(TimeStep(static_cast<uint64_t>(t.port(p).delay))));
    m_ports[static_cast<std::size_t>(p)]->SetChannel(channel);
    m_ports[static_cast<std::size_t>(peer)]->SetChannel(channel);
  }
}

void Ns3Engine::SetBuffers() {
  const ::dcqcn::Topology& t = m_world.topology;
  for (std::size_t s = 0; s < m_switches.size(); ++s) {
    std::vector<::dcqcn::Bytes> headrooms;
    const int node = t.hosts() + static_cast<int>(s);
    for (int p = t.first_port(node); p < t.first_port(node + 1); ++p) {
      headrooms.push_back(t.port(p).headroom);
    }
    m_switches[s]->SetBuffer(::dcqcn::SharedBuffer(m_world.scenario.pfc,
                                                   m_world.scenario.switches[s].buffer, headrooms));
  }
}

void Ns3Engine::run(::dcqcn::Time until) {
  ArmFlows();
  const int64_t last = until - 1;  // what happens at `until` belongs to the next interval
  const int64_t now = Simulator::Now().GetTimeStep();
  if (last < now) return;
  Simulator::Stop(TimeStep(static_cast<uint64_t>(last - now)));
  Simulator::Run();
  // events of the last picosecond that were scheduled after the stop
  for (uint64_t before = 0; Simulator::GetEventCount() - before > 1;) {
    before = Simulator::GetEventCount();
    Simulator::Stop(TimeStep(0));
    Simulator::Run();
  }
}

void Ns3Engine::ArmFlows() {
  const int64_t next = m_world.source.next_time();
  if (next >= m_flowDue) return;
  m_flowDue = next;
  const int64_t now = Simulator::Now().GetTimeStep();
  Simulator::Schedule(TimeStep(static_cast<uint64_t>(next - now)), &Ns3Engine::OnFlows, this);
}

void Ns3Engine::ArmJobs() {
  std::vector<int>& woken = m_world.source.jobs().woken();
  for (const int host : woken) m_hosts[static_cast<std::size_t>(host)]->ArmJobs();
  woken.clear();
}

void Ns3Engine::OnFlows() {
  const int64_t now = Simulator::Now().GetTimeStep();
  if (m_flowDue != now) return;  // an earlier one took its place
  m_flowDue = kNever;
  m_starts.clear();
  m_world.source.take_until(now + 1, m_starts);
  for (const ::dcqcn::FlowStart& flow : m_starts) {
    m_hosts[static_cast<std::size_t>(flow.src)]->OnFlow(flow);
  }
  ArmFlows();
}

void Ns3Engine::settings_changed(::dcqcn::Time now) {
  for (const Ptr<RdmaHost>& host : m_hosts) host->SettingsChanged(now);
}

void Ns3Engine::set_ecn(const std::vector<::dcqcn::EcnSetting>& per_port) {
  ::dcqcn::set_curves([this](std::size_t i) -> PfcDevice::Figures& { return m_ports[i]->Model(); },
                      per_port);
  const auto hosts = static_cast<std::size_t>(m_world.topology.hosts());
  const auto bufferOf = [this, hosts](int node) -> ::dcqcn::SharedBuffer& {
    return m_switches[static_cast<std::size_t>(node) - hosts]->Buffer();
  };
  ::dcqcn::set_alphas(bufferOf, m_world.topology, per_port);
}

void Ns3Engine::report_ports(::dcqcn::Time now, std::vector<::dcqcn::PortReport>& out) {
  ::dcqcn::take_reports(
      [this](std::size_t i) -> PfcDevice::Figures& { return m_ports[i]->Model(); }, m_world, now,
      out);
}

::dcqcn::PortSample Ns3Engine::sample_port(int port, ::dcqcn::Time now) const {
  return ::dcqcn::sample_of(m_ports[static_cast<std::size_t>(port)]->Model(), m_world.scenario,
                            now);
}

void Ns3Engine::EnablePcap(const std::string& prefix) {
  const ::dcqcn::Wire standard;
  const ::dcqcn::Wire& wire = m_world.scenario.wire;
  if (wire.data_overhead != standard.data_overhead || wire.ack != standard.ack ||
      wire.cnp != standard.cnp || wire.pfc != standard.pfc || wire.cnp_in_ack) {
    throw std::runtime_error("captures need the frame sizes of RoCEv2: wire profile \"rocev2\"");
  }
  const std::string refused =
      "captures need a prefix in a folder that can be written; cannot write the capture file ";
  for (const Ptr<PfcDevice>& port : m_ports) {
    const std::string name = prefix + "-" + std::to_string(port->GetNode()->GetId()) + "-" +
                             std::to_string(port->Index()) + ".pcap";
    Ptr<PcapFileWrapper> file =
        CreateObjectWithAttributes<PcapFileWrapper>("NanosecMode", BooleanValue(true));
    file->Open(name, std::ios::out | std::ios::binary);
    if (file->Fail()) throw std::runtime_error(refused + name);
    file->Init(kDltEthernet);
    if (file->Fail()) throw std::runtime_error(refused + name);
    port->EnablePcap(file);
  }
}

double Ns3Engine::KnobOf(std::size_t host, const ::dcqcn::KnobRow& knob,
                         const std::map<std::string, double>& more) const {
  const auto same = [&knob](const auto& k) { return std::string(knob.name) == k.row.name; };
  const auto at = std::find_if(::dcqcn::kDcqcnKnobs.begin(), ::dcqcn::kDcqcnKnobs.end(), same);
  if (at != ::dcqcn::kDcqcnKnobs.end()) {
    return m_hosts[host]->Knobs()[static_cast<std::size_t>(at - ::dcqcn::kDcqcnKnobs.begin())];
  }
  const auto given = more.find(knob.name);
  return given != more.end() ? given->second : knob.initial_si();
}

std::vector<double> Ns3Engine::NicRows(const std::map<std::string, double>& more) const {
  const ::dcqcn::NicSchemes& schemes = m_world.transport.schemes();
  std::vector<double> rows(m_hosts.size() * schemes.columns());
  for (std::size_t host = 0; host < m_hosts.size(); ++host) {
    double* row = rows.data() + host * schemes.columns();
    for (const ::dcqcn::KnobRow& knob : schemes.of(static_cast<int>(host)).names().knobs) {
      *row++ = KnobOf(host, knob, more);
    }
  }
  return rows;
}

std::vector<::dcqcn::EcnSetting> Ns3Engine::EcnAttributes() const {
  std::vector<::dcqcn::EcnSetting> settings;
  for (const Ptr<PfcDevice>& port : m_ports) {
    settings.push_back(::dcqcn::EcnSetting::from_si(port->Knobs().data()));
    settings.back().pfc_alpha = port->PfcAlpha();
  }
  return settings;
}

std::string Ns3Engine::Schemes() const {
  std::vector<std::string> names;
  for (std::size_t host = 0; host < m_hosts.size(); ++host) {
    const char* name = m_world.transport.schemes().of(static_cast<int>(host)).names().name;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  std::string joined;
  for (const std::string& name : names) joined += (joined.empty() ? "" : ",") + name;
  return joined;
}

std::vector<std::pair<std::string, double>> Ns3Engine::SettingSi(
    const std::map<std::string, double>& more) const {
  std::vector<std::pair<std::string, double>> setting;
  const ::dcqcn::SchemeNames* last = nullptr;
  for (std::size_t host = 0; host < m_hosts.size(); ++host) {
    const auto& names = m_world.transport.schemes().of(static_cast<int>(host)).names();
    if (&names == last) continue;
    last = &names;
    for (const ::dcqcn::KnobRow& knob : names.knobs) {
      const auto same = [&knob](const auto& entry) { return entry.first == knob.name; };
      if (std::any_of(setting.begin(), setting.end(), same)) continue;
      setting.emplace_back(knob.name, KnobOf(host, knob, more));
    }
  }
  const auto& ecn = m_ports.front()->Knobs();
  for (std::size_t i = 0; i < ecn.size(); ++i) {
    setting.emplace_back(::dcqcn::ecn_knobs()[i].name, ecn[i]);
  }
  if (const double alpha = m_ports.front()->PfcAlpha(); alpha > 0) {
    setting.emplace_back(::dcqcn::pfc_knobs().front().name, alpha);
  }
  return setting;
}

}  // namespace ns3
