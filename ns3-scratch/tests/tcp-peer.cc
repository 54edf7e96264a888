// SPDX-License-Identifier: GPL-2.0-only
// One flow of ns-3's own TCP (its internet module, nothing of ours): a peer for the flows of
// classes with transport = "tcp". host --fast-- router --slow-- host; the router's queue towards
// the slow link drops what exceeds it. Prints time in ns and bytes acknowledged, at every period
// and when all are.
#include <cstdint>
#include <cstdio>
#include <string>

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-helper.h"

using namespace ns3;

namespace {

uint32_t g_bytes = 1'000'000;
Time g_every = MilliSeconds(10);
int64_t g_connected = 0;

// what docs/reference/model.md says of our sender, in ns-3's words
void UseOurRules(const std::string& leastRto, uint32_t threshold) {
  const auto set = [](const char* name, const AttributeValue& value) {
    Config::SetDefault(name, value);
  };
  set("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName("ns3::TcpNewReno")));
  set("ns3::TcpL4Protocol::RecoveryType",
      TypeIdValue(TypeId::LookupByName("ns3::TcpClassicRecovery")));
  set("ns3::TcpSocketBase::Sack", BooleanValue(false));
  set("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
  set("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(false));
  set("ns3::TcpSocketBase::ClockGranularity", TimeValue(NanoSeconds(1)));
  set("ns3::TcpSocketBase::MinRto", StringValue(leastRto));
  set("ns3::TcpSocket::SegmentSize", UintegerValue(1000));
  set("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
  set("ns3::TcpSocket::InitialSlowStartThreshold", UintegerValue(threshold));
  set("ns3::TcpSocket::DelAckCount", UintegerValue(1));
  set("ns3::TcpSocket::SndBufSize", UintegerValue(2 * g_bytes));
  set("ns3::TcpSocket::RcvBufSize", UintegerValue(2 * g_bytes));
}

void Say(Ptr<Socket> socket) {
  const uint32_t acked = socket->GetTxAvailable() - g_bytes;
  std::printf("%lld %u\n", static_cast<long long>(Simulator::Now().GetNanoSeconds() - g_connected),
              acked);
  if (acked == g_bytes) Simulator::Stop();
}

// what is not read makes every further segment slower to take in
void Read(Ptr<Socket> socket) {
  while (const Ptr<Packet> packet = socket->Recv()) {
    if (packet->GetSize() == 0) return;
  }
}

void SayAgain(Ptr<Socket> socket) {
  Say(socket);
  Simulator::Schedule(g_every, &SayAgain, socket);
}

void OnAck(Ptr<Socket> socket, uint32_t available) {
  if (available == 2 * g_bytes) Say(socket);
}

void SendAll(Ptr<Socket> socket) {
  g_connected = Simulator::Now().GetNanoSeconds();
  socket->SetSendCallback(MakeCallback(&OnAck));
  socket->Send(Create<Packet>(g_bytes));
  Simulator::Schedule(g_every, &SayAgain, socket);
}

Ipv4Address Link(Ptr<Node> a, Ptr<Node> b, const std::string& rate, const std::string& delay,
                 const std::string& queue, const char* network) {
  PointToPointHelper link;
  link.SetDeviceAttribute("DataRate", StringValue(rate));
  link.SetChannelAttribute("Delay", StringValue(delay));
  link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue(queue));
  const NetDeviceContainer devices = link.Install(a, b);
  Ipv4AddressHelper addresses;
  addresses.SetBase(network, "255.255.255.0");
  const Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
  TrafficControlHelper().Uninstall(devices);  // else a queue discipline drops before the queue
  return interfaces.GetAddress(1);
}

}  // namespace

int main(int argc, char* argv[]) {
  std::string fast = "100Gbps", slow = "10Gbps", delay = "25us", queue = "100p", rto = "4ms";
  uint32_t threshold = UINT32_MAX;
  Time until = Seconds(1);
  CommandLine line(__FILE__);
  line.AddValue("bytes", "bytes of the flow", g_bytes);
  line.AddValue("fast", "rate of the sender's link", fast);
  line.AddValue("slow", "rate of the receiver's link", slow);
  line.AddValue("delay", "of either link", delay);
  line.AddValue("queue", "what the router's queue holds", queue);
  line.AddValue("rto", "the shortest retransmission timer", rto);
  line.AddValue("threshold", "bytes of window where the first slow start ends", threshold);
  line.AddValue("every", "how often to say how far it is", g_every);
  line.AddValue("until", "when to end, done or not", until);
  line.Parse(argc, argv);
  UseOurRules(rto, threshold);

  NodeContainer nodes;
  nodes.Create(3);
  InternetStackHelper().Install(nodes);
  Link(nodes.Get(0), nodes.Get(1), fast, delay, "1000000p", "10.0.0.0");
  const Ipv4Address receiver = Link(nodes.Get(1), nodes.Get(2), slow, delay, queue, "10.0.1.0");
  Ipv4GlobalRoutingHelper::PopulateRoutingTables();

  const Ptr<Socket> listener = Socket::CreateSocket(nodes.Get(2), TcpSocketFactory::GetTypeId());
  listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), 5000));
  listener->Listen();
  listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                              MakeCallback(+[](Ptr<Socket> accepted, const Address&) {
                                accepted->SetRecvCallback(MakeCallback(&Read));
                              }));
  const Ptr<Socket> sender = Socket::CreateSocket(nodes.Get(0), TcpSocketFactory::GetTypeId());
  sender->Bind();
  sender->SetConnectCallback(MakeCallback(&SendAll), MakeNullCallback<void, Ptr<Socket>>());
  sender->Connect(InetSocketAddress(receiver, 5000));
  Simulator::Stop(until);
  Simulator::Run();
  Simulator::Destroy();
  return 0;
}
