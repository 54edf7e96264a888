// The strict reading of the compiled scenario: what each line kind accepts, and what it says of
// everything else.
#include <stdexcept>
#include <string>

#include "check.hpp"
#include "model/text/near_match.hpp"
#include "model/text/scenario.hpp"

using dcqcn::Scenario;

namespace {

// every line kind with every key, other than the defaults where there is room for it
const std::string kNodes = "nodes hosts=3 switches=2\n";
const std::string kSwitches =
    "switch 3 tier=0 buffer=1000000 salt=7\nswitch 4 tier=1 buffer=2000000 salt=4294967295\n";
const std::string kLinks =
    "link 0 3 ps_per_byte=81 delay_ps=1000 headroom=10\n"
    "link 1 3 ps_per_byte=80 delay_ps=1000 headroom=10\n"
    "link 2 4 ps_per_byte=80 delay_ps=1000 headroom=10\n"
    "link 3 4 ps_per_byte=20 delay_ps=2000 headroom=20\n"
    "next_hop 3 0 2 5 2\n";
const std::string kDevices =
    "wire payload=4096 data=48 ack=60 cnp=61 pfc=43 cnp_in_ack=1\n"
    "pfc enabled=1 lossless=3,4 alpha=0.5 reserve=100 resume_offset=200 "
    "ack_class=control\n"
    "scheme name=dcqcn mode=paper hosts=0,2\n"
    "transport qp=pair ack_every=2 window=100000 window_scaling=1 rto_ps=5000 "
    "dispatch_delay_ps=6 rtt_probe_ps=17\n"
    "cnp scope=port port_gap_ps=7 delay_ps=8\n"
    "monitor kind=elastic tau=9 delta=2 theta=0.5 pe_weight=survival heavy_bytes=64 light_bytes=1 "
    "max_flows=10 unit=packets sizes_cdf=0 packet_bytes=15 hash_seed=16 labels=1 trace=1\n";
const std::string kTraffic =
    "cdf 0 100:0.5 1000:1 points=2\n"
    "workload poisson cdf=0 hosts=0,1 dsts=2 mean_gap_ps=1.5 start_ps=1 stop_ps=9 repeat_ps=20 "
    "priority=4\n"
    "workload alltoall hosts=0,1,2 bytes=5 messages=2 off_ps=1 start_ps=2 stop_ps=-1 rounds=3 "
    "priority=0\n"
    "workload incast hosts=0,1 dst=2 bytes=5 messages=1 off_ps=0 start_ps=0 stop_ps=7 rounds=0 "
    "priority=3\n"
    "workload permutation hosts=0,1 bytes=6 messages=1 off_ps=0 start_ps=0 stop_ps=7 rounds=0 "
    "priority=3\n"
    "workload ring hosts=2,0 bytes=5 steps=4 messages=1 off_ps=0 start_ps=0 stop_ps=7 rounds=0 "
    "priority=3\n"
    "workload pairs pairs=0>1:5,2>0:6 messages=1 off_ps=0 start_ps=0 stop_ps=7 rounds=1 "
    "priority=3\n"
    "workload flows priority=3\n"
    "flow 0 1 1000 0\n"
    "flow 2 1 1001 5\n";
const std::string kBody = kNodes + kSwitches + kLinks + kDevices + kTraffic + "end\n";
const std::string kComplete = "dcqcn-gym-scenario 1 complete\n" + kBody;
const std::string kLoose = "dcqcn-gym-scenario 1\n" + kBody;

std::string message_of(const std::string& text) {
  try {
    Scenario::parse(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

std::string replaced(std::string text, const std::string& old, const std::string& now) {
  const auto at = text.find(old);
  CHECK(at != std::string::npos);
  return at == std::string::npos ? text : text.replace(at, old.size(), now);
}

void says(const std::string& text, const std::string& part) {
  const std::string message = message_of(text);
  if (!CHECK(message.find(part) != std::string::npos)) {
    std::printf("    expected '%s', got '%s'\n", part.c_str(), message.c_str());
  }
}

void refuses(const std::string& old, const std::string& now, const std::string& part) {
  says(replaced(kComplete, old, now), part);
}

void every_key_arrives() {
  const Scenario s = Scenario::parse(kComplete);
  CHECK_EQ(s.hosts, 3);
  CHECK_EQ(s.switches[1].tier, 1);
  CHECK_EQ(s.switches[1].buffer, 2'000'000);
  CHECK_EQ(s.switches[1].salt, 4294967295u);
  CHECK((s.links[3] == dcqcn::LinkSpec{3, 4, 20, 2000, 20}));
  CHECK_EQ(s.links[0].ps_per_byte, 81);
  CHECK((s.next_hops == std::vector<dcqcn::NextHopRow>{{3, 0, 2, 5, 2}}));
  CHECK((s.wire == dcqcn::Wire{4096, 48, 60, 61, 43, true}));
  CHECK((s.pfc == dcqcn::PfcConfig{true, 1u << 3 | 1u << 4, 0.5, 100, 200, false}));
  CHECK_EQ(s.schemes.size(), 1);
  CHECK(s.schemes[0].name == "dcqcn");
  CHECK((s.schemes[0].options ==
         std::vector<std::pair<std::string, std::string>>{{"mode", "paper"}}));
  CHECK((s.schemes[0].hosts == std::vector<int>{0, 2}));
  const dcqcn::Transport& t = s.transport;
  CHECK(t.qp_per_pair && t.window_scales && t.cnp_scope_port);
  CHECK_EQ(t.ack_every, 2);
  CHECK_EQ(t.window, 100'000);
  CHECK_EQ(t.rto, 5000);
  CHECK_EQ(t.dispatch_delay, 6);
  CHECK_EQ(t.rtt_probe, 17);
  CHECK_EQ(t.cnp_port_gap, 7);
  CHECK_EQ(t.cnp_delay, 8);
}

void every_monitor_key_arrives() {
  const dcqcn::MonitorConfig m = Scenario::parse(kComplete).monitor;
  const auto& elastic = std::get<dcqcn::monitors::Elastic::Options>(m.options);
  CHECK(elastic.pe_weight == dcqcn::PeWeight::kSurvival);
  CHECK_EQ(elastic.tau, 9);
  CHECK_EQ(elastic.delta, 2);
  CHECK_EQ(elastic.theta, 0.5);
  CHECK_EQ(elastic.heavy_bytes, 64);
  CHECK_EQ(elastic.light_bytes, 1);
  CHECK_EQ(elastic.max_flows, 10);
  CHECK_EQ(elastic.packet_bytes, 15);
  CHECK_EQ(elastic.hash_seed, 16);
  CHECK(elastic.count_packets && elastic.labels && elastic.trace);
  CHECK_EQ(elastic.sizes.size(), 2);
}

dcqcn::MonitorConfig monitor_of(const std::string& words) {
  return dcqcn::MonitorConfig::read(dcqcn::Line("monitor " + words, 1, true));
}

void every_key_of_the_other_monitors_arrives() {
  const auto n = std::get<dcqcn::monitors::Netflow::Options>(
      monitor_of("kind=netflow tau=1 theta=0 sample_one_in=11 export_ps=12").options);
  CHECK_EQ(n.sample_one_in, 11);
  CHECK_EQ(n.export_every, 12);
  const auto c = std::get<dcqcn::monitors::Chameleon::Options>(
      monitor_of("kind=chameleon tau=1 theta=0 heavy_bytes=64 light_bytes=4 unit=bytes local_ps=13 "
                 "upload_ps=14")
          .options);
  CHECK_EQ(c.local_every, 13);
  CHECK_EQ(c.upload_every, 14);
  CHECK_EQ(c.heavy_bytes, 64);
}

// a key of another kind changes nothing, so it is taken only if it does not ask for anything
void keys_of_other_monitors() {
  const std::string netflow = "kind=netflow tau=1 theta=0 sample_one_in=100 export_ps=5";
  CHECK(monitor_of(netflow + " heavy_bytes=153600 delta=3 pe_weight=ratio unit=bytes") ==
        monitor_of(netflow));
  const std::string monitor = kDevices.substr(kDevices.find("monitor "));
  const auto refused = [&](const std::string& words, const std::string& part) {
    refuses(monitor, "monitor " + words + "\n", part);
  };
  refused(netflow + " heavy_bytes=64",
          "heavy_bytes = '64' is an option of elastic, elastic-naive, chameleon, not of kind "
          "netflow; leave it out or choose another kind");
  refused(netflow + " delta=2", "delta = '2' is an option of exact, elastic, not of kind netflow");
  refused(netflow + " unit=bits", "unknown unit 'bits'");
  refused(netflow + " heavy_byte=64", "unknown key 'heavy_byte'");
  refused("kind=none tau=1 theta=0 export_ps=5", "export_ps = '5' is an option of netflow, not of");
  refused("kind=exact tau=1 theta=0 delta=1 pe_weight=ratio", "key 'max_flows' is missing");
  refused("tau=1 theta=0", "key 'kind' is missing");
}

void every_workload_key_arrives() {
  const Scenario s = Scenario::parse(kComplete);
  CHECK_EQ(s.workloads.size(), 7);
  const dcqcn::WorkloadSpec& poisson = s.workloads[0];
  CHECK((poisson.hosts == std::vector<int>{0, 1} && poisson.dsts == std::vector<int>{2}));
  CHECK_EQ(poisson.mean_gap, 1.5);
  CHECK_EQ(poisson.start, 1);
  CHECK_EQ(poisson.stop, 9);
  CHECK_EQ(poisson.repeat, 20);
  CHECK_EQ(poisson.priority, 4);
  const dcqcn::WorkloadSpec& all = s.workloads[1];
  CHECK_EQ(all.bytes, 5);
  CHECK_EQ(all.messages, 2);
  CHECK_EQ(all.off, 1);
  CHECK_EQ(all.start, 2);
  CHECK_EQ(all.stop, dcqcn::kNever);
  CHECK_EQ(all.rounds, 3);
  CHECK_EQ(all.priority, 0);
  CHECK((s.workloads[2].dsts == std::vector<int>{2}));
  CHECK_EQ(s.workloads[4].steps, 4);
  CHECK((s.workloads[5].transfers[1] == dcqcn::Transfer{2, 0, 6, 0}));
  CHECK((s.workloads[6].transfers[1] == dcqcn::Transfer{2, 1, 1001, 5}));
  CHECK((s.cdfs[0][0] == dcqcn::CdfPoint{100, 0.5}));
}

// the faults that were once accepted in silence
void misspelt_words_are_refused() {
  refuses("transport qp", "transport rp=paper qp", "line 13 (transport): unknown key 'rp'");
  refuses("qp=pair", "qp=piar", "unknown qp 'piar'; did you mean 'pair'? (known: flow, pair)");
  refuses("alpha=0.5", "alfa=0.5", "line 11 (pfc): unknown key 'alfa'; did you mean 'alpha'?");
  refuses("window=100000", "windwo=9", "unknown key 'windwo'; did you mean 'window'?");
  refuses("transport qp", "transport scheme=hpcc qp", "unknown key 'scheme'");
  refuses("cnp scope", "cpn scope", "line 14 (cpn): unknown item 'cpn'; did you mean 'cnp'?");
  refuses("kind=elastic", "kind=elastik", "unknown kind 'elastik'; did you mean 'elastic'");
  refuses("workload ring", "workload rang", "unknown pattern 'rang'; did you mean 'ring'?");
}

void network_lines_are_strict() {
  says("dcqcn-gym-scenario 2\nend\n", "line 1 (dcqcn-gym-scenario): expected 'dcqcn-gym-scenario");
  refuses("1 complete", "1 compleet", "expected 'dcqcn-gym-scenario 1' or");
  refuses("1 complete", "1 complete x=1", "expected 'dcqcn-gym-scenario 1' or");
  refuses("nodes hosts=3", "nodes hosts=1", "hosts = '1'; expected a whole number from 2 to 65536");
  refuses("nodes hosts", "nodes 3 hosts", "line 2 (nodes): expected keys only, got 1 value: '3'");
  refuses(kNodes, "", "line 2 (switch): expected the line 'nodes' before it");
  refuses(kNodes, kNodes + kNodes, "line 3 (nodes): a second one; the first is line 2");
  says("dcqcn-gym-scenario 1\nend\n", "no line 'nodes'");
  refuses("switch 3", "switch", "expected the number of one node, got 0 values");
  refuses("switch 3", "switch 2", "node 2 is a host");
  refuses("switch 3", "switch 5", "node 5 does not exist; nodes are 0 to 4");
  refuses("switch 3", "switch -1", "node = '-1'; expected a whole number from 0");
  refuses("switch 3", "switch 4", "line 4 (switch): a second one for node 4; the first is line 3");
  refuses("salt=7", "salt=4294967296", "salt = '4294967296'; expected a whole number from 0 to");
  refuses("link 0 3", "link 0", "expected the numbers of two nodes, got 1 value: '0'");
  refuses("link 0 3", "link 0 0", "a link joins two different nodes");
  refuses("ps_per_byte=81", "ps_per_byte=80.5", "'80.5' is not a whole number");
  refuses("ps_per_byte=81", "ps_per_byte=0", "ps_per_byte = '0'; expected a whole number from 1");
  refuses("delay_ps=1000", "delay_ps=1000 delay_ps=1000", "key 'delay_ps' is given twice");
  refuses("link 1 3 ps", "# link 1 3 ps", "host 1 has 0 links; a host has exactly one");
  refuses("buffer=1000000", "buffer=600", "switch 3: headroom and reserve need 680 B");
}

void device_lines_are_strict() {
  refuses("payload=4096", "payload=4097", "payload = '4097'; expected a whole number from 1 to");
  refuses("cnp_in_ack=1", "cnp_in_ack=yes", "unknown cnp_in_ack 'yes' (known: 0, 1)");
  refuses("cnp_in_ack=1", "cnp_in_ack=1 2", "'2' is not key=value");
  refuses("lossless=3,4", "lossless=3,8", "lossless = '8'; expected a whole number from 0 to 7");
  refuses("lossless=3,4", "lossless=3,,4", "lossless = '' is not a whole number");
  refuses("lossless=3,4", "lossless=3,3", "expected every number once, 3 stands there twice");
  refuses("alpha=0.5", "alpha=nan", "alpha = 'nan'; expected a number from 0 to 1e+06");
  refuses("alpha=0.5", "alpha=0.5x", "alpha = '0.5x' is not a number");
  refuses("alpha=0.5", "alpha=", "alpha = '' is not a number");
  refuses("ack_class=control", "ack_class=date", "unknown ack_class 'date'; did you mean 'data'?");
  refuses("ack_class=control", "ack_class=data",
          "ack_class = data needs PFC for the priority of every workload, and priority 0 can lose");
  refuses("ack_every=2", "ack_every=0", "ack_every = '0'; expected a whole number from 1");
  refuses("rto_ps=5000", "rto_ps=99999999999999999999", "is not a whole number");
  refuses("delay_ps=8\n", "\n", "line 14 (cnp): key 'delay_ps' is missing");
  refuses("cnp scope", "# cnp scope", "no line 'cnp' before it");
  refuses("light_bytes=1 ", "light_bytes=3 unit=bytes ", "key 'unit' is given twice");
  refuses("unit=packets", "unit=bytes", "light_bytes = 1 is too small for one counter of 4 bytes");
  refuses(" sizes_cdf=0", "", "pe_weight = survival needs sizes_cdf");
  refuses("sizes_cdf=0", "sizes_cdf=1", "sizes_cdf = 1 of the monitor; expected one of 1 cdfs");
}

void traffic_lines_are_strict() {
  refuses("cdf 0 100", "cdf 1 100", "expected 0, cdfs are numbered in order");
  refuses("100:0.5 ", "", "points = 2, but there are 1");
  refuses("points=2", "", "key 'points' is missing");
  refuses("1000:1 ", "1000:0.9 ", "the last probability must be 1");
  refuses("100:0.5 1000:1", "100:0.5 100:0.5 1000:1",
          "point = '100:0.5'; expected points that grow");
  refuses("100:0.5", "100-0.5", "point = '100-0.5'; expected bytes:probability");
  refuses("poisson cdf=0 ", "poisson ", "line 17 (workload): key 'cdf' is missing");
  refuses("poisson cdf=0 ", "poisson cdf=1 ", "cdf 1 does not exist");
  refuses("dsts=2", "dsts=3", "host 3 does not exist; hosts are 0 to 2");
  refuses("dsts=2", "dsts=none", "dsts is empty");
  refuses("dsts=2", "dsts=", "dsts = '' is not a whole number");
  refuses("mean_gap_ps=1.5", "mean_gap_ps=0", "mean_gap_ps = '0'; expected a number from 1e-06");
  refuses("hosts=0,1,2 bytes=5", "hosts=0,1,2 bytes=0",
          "bytes = '0'; expected a whole number from 1");
  refuses("messages=2", "messages=0", "messages = '0'");
  refuses("dst=2", "dst=2,1", "dst = '2,1' is not a whole number");
  refuses("hosts=2,0", "hosts=2", "a ring needs at least 2 hosts");
  refuses("steps=4", "step=4", "unknown key 'step'; did you mean 'steps'");
  refuses("permutation hosts=0,1", "permutation hosts=0,0", "0 stands there twice");
  refuses("0>1:5", "0>1;5", "pairs = '0>1;5'; expected src>dst:bytes");
  refuses("0>1:5", "0>0:5", "host 0 sends to itself");
  refuses("priority=0", "priority=8", "priority = '8'; expected a whole number from 0 to 7");
  refuses("flows priority=3", "flows rounds=1 priority=3", "unknown key 'rounds'");
  refuses("flow 0 1 1000 0", "flow 0 1 1000", "expected src, dst, bytes and start in ps, got 3");
  refuses("flow 0 1 1000 0", "flow 0 1 1000 0 a=1", "unknown key 'a'");
  refuses("flow 0 1", "flow 0 9", "line 24 (flow): host 9 does not exist");
  refuses("flow 0 1", "flow 1 1", "host 1 sends to itself");
  refuses("workload flows", "# workload flows", "a flow must follow 'workload flows'");
  refuses("end\n", "", "'end' is missing; the text is cut");
  refuses("end\n", "end 1\n", "expected nothing more, got 1 value: '1'");
  refuses("end\n", "end\nlink 0 3\n", "line 27 (link): comes after 'end', which is line 26");
}

void next_hop_lines_are_strict() {
  const std::string row = "next_hop 3 0 2 5 2\n";
  refuses(row, "next_hop 3 0 2 5\n", "expected switch, src, dst, ordinal and port, got 4 values");
  refuses(row, "next_hop 2 0 2 5 2\n", "node 2 is a host");
  refuses(row, "next_hop 5 0 2 5 2\n", "node 5 does not exist; nodes are 0 to 4");
  refuses(row, "next_hop 3 0 3 5 2\n", "host 3 does not exist; hosts are 0 to 2");
  refuses(row, "next_hop 3 0 0 5 2\n", "host 0 sends to itself");
  refuses(row, "next_hop 3 0 2 -5 2\n", "ordinal = '-5'; expected a whole number from 0");
  refuses(row, "next_hop 3 0 2 5 2 x=1\n", "unknown key 'x'");
  refuses(row, "next_hop 3 0 2 5 2 packets=ack\n", "unknown packets 'ack'; did you mean 'acks'?");
  refuses(row, row + row, "line 10 (next_hop): the same flow and switch as on line 9");
}

// a text by hand may leave keys and lines to their defaults; one that says it is complete may not
void only_a_loose_text_has_defaults() {
  CHECK(Scenario::parse(kLoose) == Scenario::parse(kComplete));
  const Scenario bare = Scenario::parse(
      "dcqcn-gym-scenario 1\n\n# two hosts\nnodes hosts=2 switches=1\nlink 0 2 # near\nlink 1 2\n"
      "end\n");
  CHECK_EQ(bare.switches[0].buffer, 12'582'912);
  CHECK_EQ(bare.links[0].ps_per_byte, 80);
  CHECK(bare.wire == dcqcn::Wire() && bare.pfc == dcqcn::PfcConfig());
  CHECK(bare.monitor == dcqcn::MonitorConfig());
  for (const std::string word : {" tier=1", " headroom=20", " cnp=61", " alpha=0.5", " qp=pair",
                                 " scope=port", " tau=9", " priority=0", " repeat_ps=20"}) {
    CHECK_EQ(message_of(replaced(kLoose, word, "")) == "accepted", true);
    refuses(word, "", "is missing");
  }
  says(replaced(kLoose, "hosts=2,0 ", ""), "key 'hosts' is missing");
}

void near_matches() {
  using dcqcn::edit_distance;
  CHECK_EQ(edit_distance("", "abc"), 3);
  CHECK_EQ(edit_distance("kitten", "sitting"), 3);
  CHECK_EQ(edit_distance("flwo", "flow"), 1);  // neighbours swapped
  CHECK_EQ(edit_distance("abc", "abc"), 0);
  CHECK(dcqcn::did_you_mean("x", {"ab", "cd"}) == " (known: ab, cd)");
  CHECK(dcqcn::did_you_mean("hosst", {"dst", "hosts", "host"}) ==
        "; did you mean 'hosts' or 'host'? (known: dst, hosts, host)");
  CHECK(message_of("dcqcn-gym-scenario 1\n" + std::string(100'000, 'q') + "\nend\n").size() < 400);
}

}  // namespace

int main() {
  every_key_arrives();
  every_monitor_key_arrives();
  every_key_of_the_other_monitors_arrives();
  keys_of_other_monitors();
  every_workload_key_arrives();
  misspelt_words_are_refused();
  network_lines_are_strict();
  device_lines_are_strict();
  traffic_lines_are_strict();
  next_hop_lines_are_strict();
  only_a_loose_text_has_defaults();
  near_matches();
  return dcqcn::check::result("compiled_text");
}
