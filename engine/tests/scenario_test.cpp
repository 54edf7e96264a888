// The compiled scenario: every kind of line and its defaults, and every mistake with its message.
#include "model/text/scenario.hpp"

#include <stdexcept>
#include <string>

#include "tests/check.hpp"

namespace dcqcn {
namespace {

// 2 hosts, one switch; the lines of `rest` begin at line 6
std::string world(const std::string& rest) {
  return "dcqcn-gym-scenario 1\nnodes hosts=2 switches=1\nswitch 2\nlink 0 2\nlink 1 2\n" + rest +
         "end\n";
}
Scenario read(const std::string& rest) { return Scenario::parse(world(rest)); }

// what parsing the text says; "" if it is fine
std::string mistake(const std::string& text) {
  try {
    Scenario::parse(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

bool says(const std::string& text, const std::string& expected) {
  const std::string found = mistake(text);
  if (found != expected)
    std::printf("    found    %s\n    expected %s\n", found.c_str(), expected.c_str());
  return found == expected;
}

// `line` as line 6 of a good scenario
bool refused(const std::string& line, const std::string& why) {
  const std::string word = line.substr(0, line.find(' '));
  return says(world(line + "\n"), "compiled scenario, line 6 (" + word + "): " + why);
}

void test_nothing_but_what_is_needed() {
  const Scenario s = read("");
  CHECK_EQ(s.hosts, 2);
  CHECK_EQ(s.nodes(), 3);
  CHECK_EQ(s.switches.size(), 1);
  CHECK_EQ(s.switches[0].tier, 0);
  CHECK_EQ(s.switches[0].buffer, 12'582'912);
  CHECK_EQ(s.switches[0].salt, 0);  // the number of the switch
  CHECK_EQ(s.links.size(), 2);
  CHECK_EQ(s.links[1].a, 1);
  CHECK_EQ(s.links[1].b, 2);
  CHECK_EQ(s.links[1].ps_per_byte, 80);
  CHECK_EQ(s.links[1].delay, 5'000'000);
  CHECK_EQ(s.links[1].headroom, 0);
  CHECK_EQ(s.wire.payload, 1000);
  CHECK_EQ(s.wire.data_overhead, 62);
  CHECK_EQ(s.wire.ack, 66);
  CHECK_EQ(s.wire.cnp, 78);
  CHECK_EQ(s.wire.pfc, 64);
  CHECK(!s.wire.cnp_in_ack);
  CHECK(s.pfc.enabled);
  CHECK_EQ(s.pfc.lossless, 8);
  CHECK_EQ(s.pfc.alpha, 0.125);
  CHECK_EQ(s.pfc.reserve, 4096);
  CHECK_EQ(s.pfc.resume_offset, 3072);
  CHECK(s.schemes.empty());  // dcqcn everywhere
  CHECK(!s.transport.qp_per_pair);
  CHECK_EQ(s.transport.ack_every, 1);
  CHECK_EQ(s.transport.window, 0);
  CHECK(!s.transport.window_scales);
  CHECK_EQ(s.transport.rto, 4'000'000'000);
  CHECK_EQ(s.transport.dispatch_delay, 0);
  CHECK(!s.transport.cnp_scope_port);
  CHECK_EQ(s.transport.cnp_port_gap, 0);
  CHECK_EQ(s.transport.cnp_delay, 0);
  CHECK(s.monitor == MonitorConfig());
  CHECK(s.cdfs.empty());
  CHECK(s.workloads.empty());
}

void test_nodes_switches_and_links() {
  const Scenario s = Scenario::parse(
      "dcqcn-gym-scenario 1\n"
      "nodes hosts=2 switches=2\n"
      "switch 3 tier=1 buffer=700000 salt=4294967295\n"
      "link 0 2 ps_per_byte=20 delay_ps=1 headroom=5\n"
      "link 1 3\n"
      "link 3 2 delay_ps=7\n"
      "pfc enabled=0\n"
      "end\n"
      "# anything after the end is a comment\n");
  CHECK_EQ(s.nodes(), 4);
  CHECK_EQ(s.switches[0].buffer, 12'582'912);  // no line of its own
  CHECK_EQ(s.switches[1].tier, 1);
  CHECK_EQ(s.switches[1].buffer, 700'000);
  CHECK_EQ(s.switches[1].salt, 4'294'967'295u);
  CHECK_EQ(s.links[0].ps_per_byte, 20);
  CHECK_EQ(s.links[0].delay, 1);
  CHECK_EQ(s.links[0].headroom, 5);
  CHECK_EQ(s.links[2].a, 3);
  CHECK_EQ(s.links[2].b, 2);
  CHECK_EQ(s.links[2].delay, 7);
}

void test_wire_pfc_transport_cnp() {
  const Scenario s = read(
      "wire payload=4096 data=0 ack=1 cnp=2 pfc=3 cnp_in_ack=1\n"
      "pfc enabled=0 lossless=0,7 alpha=0.5 reserve=1 resume_offset=2\n"
      "scheme name=dcqcn mode=paper\n"
      "transport qp=pair ack_every=4 window=5 window_scaling=1 rto_ps=6 "
      "dispatch_delay_ps=7 rtt_probe_ps=11\n"
      "cnp scope=port port_gap_ps=8 delay_ps=9\n");
  CHECK_EQ(s.wire.payload, 4096);
  CHECK_EQ(s.wire.data_overhead, 0);
  CHECK_EQ(s.wire.ack, 1);
  CHECK_EQ(s.wire.cnp, 2);
  CHECK_EQ(s.wire.pfc, 3);
  CHECK(s.wire.cnp_in_ack);
  CHECK(!s.pfc.enabled);
  CHECK_EQ(s.pfc.lossless, 0x81);
  CHECK_EQ(s.pfc.alpha, 0.5);
  CHECK_EQ(s.pfc.reserve, 1);
  CHECK_EQ(s.pfc.resume_offset, 2);
  CHECK_EQ(s.schemes.size(), 1);
  CHECK(s.schemes[0].choice("mode", {"nic", "paper"}) == "paper");
  CHECK(s.transport.qp_per_pair);
  CHECK_EQ(s.transport.ack_every, 4);
  CHECK_EQ(s.transport.window, 5);
  CHECK(s.transport.window_scales);
  CHECK_EQ(s.transport.rto, 6);
  CHECK_EQ(s.transport.rtt_probe, 11);
  CHECK_EQ(s.transport.dispatch_delay, 7);
  CHECK(s.transport.cnp_scope_port);
  CHECK_EQ(s.transport.cnp_port_gap, 8);
  CHECK_EQ(s.transport.cnp_delay, 9);
  CHECK_EQ(read("pfc enabled=1\n").pfc.lossless, 0);  // a pfc line lists them all
}

void test_monitor_and_cdfs() {
  const Scenario s = read(
      "cdf 0 100:0.25 5000:1\n"
      "cdf 1 1:1\n"
      "monitor kind=elastic tau=5 delta=2\n");
  CHECK_EQ(s.cdfs.size(), 2);
  CHECK_EQ(s.cdfs[0].size(), 2);
  CHECK_EQ(s.cdfs[0][0].bytes, 100);
  CHECK_EQ(s.cdfs[0][0].probability, 0.25);
  CHECK_EQ(s.cdfs[1][0].bytes, 1);
  const auto& elastic = std::get<monitors::Elastic::Options>(s.monitor.options);
  CHECK_EQ(elastic.tau, 5);
  CHECK_EQ(elastic.delta, 2);
}

void test_workloads() {
  const Scenario s = read(
      "cdf 0 1:1\n"
      "workload poisson cdf=0 hosts=0,1 dsts=1 mean_gap_ps=2.5 start_ps=3 stop_ps=4 repeat_ps=5\n"
      "workload alltoall hosts=0,1 bytes=6 off_ps=7 rounds=8 messages=9 priority=4\n"
      "workload incast hosts=0 dst=1 bytes=6\n"
      "workload permutation hosts=0,1 bytes=6\n"
      "workload ring hosts=0,1 bytes=6 steps=2\n"
      "workload pairs pairs=0>1:10,1>0:11\n"
      "workload flows\n"
      "flow 0 1 12 13\n"
      "flow 1 0 14 15\n"
      "workload storage hosts=0 dsts=1 depth=2 copies=0 read_share=0.5 block_min=3 block_max=6 "
      "bytes=4 rounds=5\n"
      "workload parameter-server hosts=0 dst=1 bytes=6 off_ps=7 rounds=8\n");
  const auto& w = s.workloads;
  CHECK_EQ(w.size(), 9);
  const Pattern patterns[] = {Pattern::kPoisson,     Pattern::kAllToAll, Pattern::kIncast,
                              Pattern::kPermutation, Pattern::kRing,     Pattern::kPairs,
                              Pattern::kFlows,       Pattern::kStorage,  Pattern::kParameterServer};
  for (std::size_t i = 0; i < w.size(); ++i) CHECK(w[i].pattern == patterns[i]);
  CHECK(w[0].hosts == (std::vector<int>{0, 1}));
  CHECK(w[0].dsts == (std::vector<int>{1}));
  CHECK_EQ(w[0].mean_gap, 2.5);
  CHECK_EQ(w[0].start, 3);
  CHECK_EQ(w[0].stop, 4);
  CHECK_EQ(w[0].repeat, 5);
  CHECK_EQ(w[0].priority, 3);
  CHECK_EQ(w[1].bytes, 6);
  CHECK_EQ(w[1].off, 7);
  CHECK_EQ(w[1].rounds, 8);
  CHECK_EQ(w[1].messages, 9);
  CHECK_EQ(w[1].priority, 4);
  CHECK_EQ(w[1].stop, kNever);
  CHECK(w[2].dsts == (std::vector<int>{1}));
  CHECK_EQ(w[2].messages, 1);
  CHECK_EQ(w[2].rounds, 0);
  CHECK_EQ(w[4].steps, 2);
  CHECK_EQ(w[5].transfers.size(), 2);
  CHECK_EQ(w[5].transfers[1].src, 1);
  CHECK_EQ(w[5].transfers[1].dst, 0);
  CHECK_EQ(w[5].transfers[1].bytes, 11);
  CHECK_EQ(w[6].transfers.size(), 2);
  CHECK_EQ(w[6].transfers[1].src, 1);
  CHECK_EQ(w[6].transfers[1].bytes, 14);
  CHECK_EQ(w[6].transfers[1].start, 15);
  CHECK(w[7].depth == 2 && w[7].read_share == 0.5 && w[7].block_min == 3 && w[7].block_max == 6);
  CHECK(w[7].bytes == 4 && w[7].rounds == 5 && w[7].dsts == (std::vector<int>{1}));
  CHECK(w[8].off == 7 && w[8].rounds == 8 && w[8].dsts == (std::vector<int>{1}));
  CHECK_EQ(read("workload incast hosts=0 dst=1 bytes=1 stop_ps=-1\n").workloads[0].stop, kNever);
}

void test_comments_and_empty_lines() {
  const Scenario s = read("# nothing\n\n  wire payload=7 # data=9\n   \n");
  CHECK_EQ(s.wire.payload, 7);
  CHECK_EQ(s.wire.data_overhead, 62);
  // they count as lines
  CHECK(says(
      world("# nothing\n\nwhatever\n"),
      "compiled scenario, line 8 (whatever): unknown item 'whatever' (known: nodes, switch, "
      "link, next_hop, servers, wire, pfc, class, scheme, transport, cnp, monitor, cdf, workload, "
      "flow, graph, node)"));
}

void test_the_frame_of_the_text() {
  const std::string first = "compiled scenario, line 1 ";
  CHECK(says("dcqcn-gym-scenario 2\nend\n",
             first + "(dcqcn-gym-scenario): expected 'dcqcn-gym-scenario 1' or 'dcqcn-gym-scenario "
                     "1 complete'"));
  CHECK(
      says("nodes 1\nend\n",
           first + "(nodes): expected 'dcqcn-gym-scenario 1' or 'dcqcn-gym-scenario 1 complete'"));
  CHECK(says("dcqcn-gym-scenario\nend\n",
             first + "(dcqcn-gym-scenario): expected 'dcqcn-gym-scenario 1' or 'dcqcn-gym-scenario "
                     "1 complete'"));
  const std::string cut = "compiled scenario: 'end' is missing; the text is cut";
  CHECK(says("", cut));
  CHECK(says("dcqcn-gym-scenario 1\nnodes hosts=2 switches=1\n", cut));
}

void test_mistakes_in_nodes() {
  CHECK(refused("nodes hosts=1", "a second one; the first is line 2"));
  CHECK(refused("nodes hosts=65536", "a second one; the first is line 2"));
  CHECK(refused("nodes hosts=two", "a second one; the first is line 2"));
  CHECK(refused("switch 3", "node 3 does not exist; nodes are 0 to 2"));
  CHECK(refused("switch 1", "node 1 is a host"));
  CHECK(refused("switch", "expected the number of one node, got 0 values"));
  CHECK(refused("switch 2 buffer=1e6", "a second one for node 2; the first is line 3"));
  CHECK(refused("link 0", "expected the numbers of two nodes, got 1 value: '0'"));
  CHECK(refused("link 0 3", "node 3 does not exist; nodes are 0 to 2"));
  CHECK(refused("link 0 -1", "node = '-1'; expected a whole number from 0 to 9000000000000000000"));
  CHECK(refused("link 2 2", "a link joins two different nodes"));
  CHECK(refused("link 0 2 delay_ps=0",
                "delay_ps = '0'; expected a whole number from 1 to 9000000000000000"));
  CHECK(refused("link 0 2 ps_per_byte=0",
                "ps_per_byte = '0'; expected a whole number from 1 to 1000000000"));
}

void test_mistakes_in_wire_and_transport() {
  CHECK(refused("wire payload=0", "payload = '0'; expected a whole number from 1 to 4096"));
  CHECK(refused("wire payload=4097", "payload = '4097'; expected a whole number from 1 to 4096"));
  CHECK(refused("wire data=-1", "data = '-1'; expected a whole number from 0 to 4096"));
  CHECK(refused("wire ack=0", "ack = '0'; expected a whole number from 1 to 4096"));
  CHECK(refused("wire cnp=4097", "cnp = '4097'; expected a whole number from 1 to 4096"));
  CHECK(refused("wire pfc=65536", "pfc = '65536'; expected a whole number from 1 to 65535"));
  CHECK(refused("wire payload=",
                "payload = '' is not a whole number; expected a whole number from 1 to 4096"));
  CHECK(
      refused("pfc alpha=big", "alpha = 'big' is not a number; expected a number from 0 to 1e+06"));
  CHECK(refused("pfc lossless=3,x",
                "lossless = 'x' is not a whole number; expected a whole number from 0 to 7"));
  CHECK(refused("transport ack_every=0",
                "ack_every = '0'; expected a whole number from 1 to 1000000"));
  CHECK(refused("cnp delay_ps=1.5",
                "delay_ps = '1.5' is not a whole number; expected a whole number from 0 to "
                "2250000000000000000"));
}

void test_mistakes_in_workloads() {
  const std::string hosts = "host 2 does not exist; hosts are 0 to 1";
  CHECK(refused("cdf 0 100", "point = '100'; expected bytes:probability"));
  CHECK(refused("cdf 0 1:0.5", "the last probability must be 1"));
  CHECK(refused("cdf 0", "the last probability must be 1"));
  CHECK(
      refused("cdf 0 x:1", "bytes = 'x' is not a number; expected a number from 0 to 1.1259e+15"));
  CHECK(refused("workload", "expected one pattern, then keys, got 0 values"));
  CHECK(refused("workload gossip",
                "unknown pattern 'gossip' (known: poisson, alltoall, incast, permutation, pairs, "
                "flows, ring, streams, storage, parameter-server, job)"));
  CHECK(refused("workload poisson hosts=0 cdf=0 dsts=1 mean_gap_ps=1",
                "cdf 0 does not exist; expected it on a line before"));
  CHECK(refused("workload alltoall hosts=0,2 bytes=1", hosts));
  CHECK(refused("workload incast hosts=0 dst=2 bytes=1", hosts));
  CHECK(refused("workload pairs pairs=0-1:5",
                "pairs = '0-1:5'; expected src>dst:bytes, with commas between them"));
  CHECK(refused("workload pairs pairs=0>2:5", hosts));
  CHECK(refused("workload alltoall hosts=0,1 bytes=1 messages=0",
                "messages = '0'; expected a whole number from 1 to 1073741824"));
  CHECK(refused("workload ring hosts=0,1 bytes=1", "key 'steps' is missing"));
  CHECK(refused("workload ring hosts=0 steps=1 bytes=1", "a ring needs at least 2 hosts"));
  const std::string storage =
      "workload storage depth=1 read_share=0 bytes=64 block_min=4 block_max=";
  CHECK(refused(storage + "6 hosts=0 dsts=1 copies=0",
                "block_max = 6; expected a multiple of block_min 4"));
  CHECK(refused(storage + "8 hosts=0 dsts=1 copies=1",
                "copies = 1; expected fewer than the 1 storage nodes"));
  CHECK(refused(storage + "8 hosts=0,1 dsts=1 copies=0", "names host 1 twice"));
  CHECK(refused(storage + "8 hosts=0 dsts=2 copies=0", hosts));
  CHECK(refused("workload parameter-server hosts=0,1 dst=1 bytes=1", "names host 1 twice"));
  CHECK(refused("workload storage hosts=0 dsts=1", "key 'bytes' is missing"));
  CHECK(refused("flow 0 1 5 0", "a flow must follow 'workload flows'"));
  const std::string seventh = "compiled scenario, line 7 ";
  CHECK(says(world("workload flows\nflow 0 2 5 0\n"), seventh + "(flow): " + hosts));
  CHECK(says(world("workload flows\nflow 0 1 5\n"),
             seventh + "(flow): expected src, dst, bytes and start in ps, got 3 values: '0 1 5'"));
  CHECK(says(world("cdf 0 1:1\nworkload poisson hosts=0 cdf=0 dsts=1 mean_gap_ps=0\n"),
             seventh + "(workload): mean_gap_ps = '0'; expected a number from 1e-06 to 9e+18"));
  CHECK(says(world("cdf 0 1:1\nworkload poisson hosts=0 cdf=0 dsts=none mean_gap_ps=1\n"),
             seventh + "(workload): dsts is empty; expected at least one"));
}

// what only the whole can show
void test_mistakes_of_the_whole() {
  CHECK(says(world("link 0 2\n"),
             "compiled scenario, line 7 (end): host 0 has 2 links; a host has exactly one"));
  CHECK(says("dcqcn-gym-scenario 1\nnodes hosts=2 switches=1\nswitch 2\nlink 0 2\nend\n",
             "compiled scenario, line 5 (end): host 1 has 0 links; a host has exactly one"));
  // headroom 1000 and reserve 4096 of two ports
  const std::string links = "link 0 2 headroom=1000\nlink 1 2 headroom=1000\nend\n";
  const std::string top = "dcqcn-gym-scenario 1\nnodes hosts=2 switches=1\nswitch 2 buffer=";
  CHECK(says(top + "10192\n" + links,
             "compiled scenario, line 6 (end): switch 2: headroom and reserve need 10192 B, but "
             "the buffer has 10192 B"));
  CHECK(says(top + "10193\n" + links, ""));
  CHECK(says(top + "10193\npfc lossless=3,4\n" + links,
             "compiled scenario, line 7 (end): switch 2: headroom and reserve need 20384 B, but "
             "the buffer has 10193 B"));
  CHECK(says(top + "1\npfc enabled=0\n" + links, ""));
}

}  // namespace
}  // namespace dcqcn

int main() {
  using namespace dcqcn;
  test_nothing_but_what_is_needed();
  test_nodes_switches_and_links();
  test_wire_pfc_transport_cnp();
  test_monitor_and_cdfs();
  test_workloads();
  test_comments_and_empty_lines();
  test_the_frame_of_the_text();
  test_mistakes_in_nodes();
  test_mistakes_in_wire_and_transport();
  test_mistakes_in_workloads();
  test_mistakes_of_the_whole();
  return check::result("scenario");
}
