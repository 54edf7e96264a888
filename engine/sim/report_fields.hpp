// The figures of an interval report, each in one row: its name, its unit, what it means, where it
// is shown, and how it is read. Python's dictionary and dataclass, ns-3's line, the fuzzer's
// comparison and digests, `info`, CSV columns, the log and its checker go by these rows.
#pragma once

#include <string_view>
#include <tuple>
#include <utility>

#include "sim/simulation.hpp"

namespace dcqcn {

template <class Get>
struct ReportField {
  const char* name;
  const char* unit;  // "ps", "bytes", "bit/s", "nats"; of a count what it counts
  const char* meaning;
  Get get;
  // words of "log", "info", "csv" and "sum": an interval's line of the log, the environment's info,
  // intervals.csv of `simulate`, and its summary as a sum over all intervals
  const char* shown = "";
  // in the recorded digests of tests/digests/engine-fuzz.txt; false for what came after them
  bool digested = true;
};

template <class Fields, class F>
constexpr void for_each_field(const Fields& fields, F&& f) {
  std::apply([&](const auto&... field) { (f(field), ...); }, fields);
}

// a port of a report; hosts have the first ones
struct PortRow {
  const Topology& topology;
  int number;
  const PortReport& report;

  double rate() const { return 8e12 / static_cast<double>(topology.port(number).ps_per_byte); }
};

// The order of rows is that of digests, and of the columns of files.

inline constexpr std::tuple kIntervalFields{
    ReportField{"index", "intervals", "intervals before this one",
                [](const IntervalData& r) { return r.index; }, "", false},
    ReportField{"start_ps", "ps", "when the interval began",
                [](const IntervalData& r) { return r.start; }},
    ReportField{"end_ps", "ps", "when it ended", [](const IntervalData& r) { return r.end; }},
    ReportField{"active_flows", "flows", "flows that exist at the end and will finish",
                [](const IntervalData& r) { return r.active_flows; }, "log info csv"},
    ReportField{
        "rate_cuts", "cuts",
        "cuts of a sending rate, as the schemes of the NICs count them (their counter cuts)",
        [](const IntervalData& r) { return r.counted("cuts"); }, "sum", false},
    ReportField{
        "rate_increases", "increases",
        "increases of a sending rate, likewise (increases); DCQCN's timer at full rate makes "
        "none, but its byte counter does, though the rate stays",
        [](const IntervalData& r) { return r.counted("increases"); }, "sum", false},
};

// over all ports and hosts; an interval's, and those of a whole run
inline constexpr std::tuple kTotalsFields{
    ReportField{"data_packets", "packets", "data packets that hosts sent",
                [](const Totals& t) { return t.data_packets; }, "log sum"},
    ReportField{"acks", "packets", "ACKs sent", [](const Totals& t) { return t.acks; }, "sum"},
    ReportField{"cnps", "packets", "CNPs sent", [](const Totals& t) { return t.cnps; },
                "log info csv sum"},
    ReportField{"marks", "packets", "packets ECN-marked", [](const Totals& t) { return t.marks; },
                "log info csv sum"},
    ReportField{"drops", "packets", "packets dropped", [](const Totals& t) { return t.drops; },
                "log info csv sum"},
    ReportField{"retransmitted_packets", "packets", "data packets sent again",
                [](const Totals& t) { return t.retransmitted; }, "info csv sum"},
    ReportField{"pauses", "frames", "PAUSE frames sent", [](const Totals& t) { return t.pauses; },
                "log info csv sum"},
    ReportField{"resumes", "frames", "PFC frames sent that let a port go on",
                [](const Totals& t) { return t.resumes; }},
    ReportField{"packet_hops", "packets", "packets times links, the engine's work",
                [](const Totals& t) { return t.hops; }, "log info csv sum"},
    ReportField{"delivered_bytes", "bytes", "payload that reached its receiver in order",
                [](const Totals& t) { return t.delivered; }, "log info sum"},
};

inline constexpr std::tuple kHostFields{
    ReportField{"host_tx_bytes", "bytes",
                "data on the wire whose transmission began in the interval, headers included",
                [](const PortRow& p) { return p.report.counters.tx_bytes; }},
    ReportField{"host_rate_bps", "bit/s", "rate of the host's link",
                [](const PortRow& p) { return p.rate(); }},
};

inline constexpr std::tuple kPortFields{
    ReportField{"port_node", "node", "the node that owns the egress port",
                [](const PortRow& p) { return p.topology.port(p.number).node; }, "", false},
    ReportField{"port_rate_bps", "bit/s", "rate of its link",
                [](const PortRow& p) { return p.rate(); }, "", false},
    ReportField{"port_tx_bytes", "bytes", "data sent, headers included",
                [](const PortRow& p) { return p.report.counters.tx_bytes; }},
    ReportField{"port_tx_packets", "packets", "data packets sent",
                [](const PortRow& p) { return p.report.counters.tx_packets; }},
    ReportField{"port_marked_packets", "packets", "packets ECN-marked",
                [](const PortRow& p) { return p.report.counters.marked_packets; }},
    ReportField{"port_marked_bytes", "bytes", "of these packets",
                [](const PortRow& p) { return p.report.counters.marked_bytes; }},
    ReportField{"port_max_queue_bytes", "bytes", "the longest queue",
                [](const PortRow& p) { return p.report.counters.max_queue; }},
    ReportField{"port_dropped_packets", "packets", "packets dropped on their way to this port",
                [](const PortRow& p) { return p.report.counters.dropped; }},
    ReportField{"port_queue_bytes", "bytes", "data queued at the end",
                [](const PortRow& p) { return p.report.queue; }},
    ReportField{"port_pause_ps", "ps",
                "how long the port was paused, mean over lossless priorities",
                [](const PortRow& p) { return p.report.pause; }},
    ReportField{"port_pfc_sent", "frames",
                "PFC frames, pauses and resumes, that the owner decided to send by this port",
                [](const PortRow& p) { return p.report.counters.pfc_sent; }, "", false},
    ReportField{"port_pfc_received", "frames", "PFC frames that took effect at this port",
                [](const PortRow& p) { return p.report.counters.pfc_received; }, "", false},
};

// one row per pair of hosts with a sample; digests have the pair as one number
inline constexpr std::tuple kRttFields{
    ReportField{"rtt_src", "host", "the pair's sender",
                [](const RttSum& r) { return r.pair >> 32; }, "", false},
    ReportField{"rtt_dst", "host", "its receiver",
                [](const RttSum& r) { return r.pair & 0xFFFFFFFFu; }, "", false},
    ReportField{"rtt_base_ps", "ps", "its base round trip: 2 x links x smallest delay on the path",
                [](const RttSum& r) { return r.base; }},
    ReportField{"rtt_sum_ps", "ps", "sum of its samples", [](const RttSum& r) { return r.sum; }},
    ReportField{"rtt_count", "samples", "how many", [](const RttSum& r) { return r.count; }},
};

inline constexpr std::tuple kFsdFields{
    ReportField{"fsd.elephants", "flows", "active flows of at least tau bytes so far",
                [](const FsdReport& f) { return f.elephants; }, "log info csv"},
    ReportField{"fsd.potential", "flows", "smaller ones, active for delta intervals",
                [](const FsdReport& f) { return f.potential; }, "log info csv"},
    ReportField{"fsd.mice", "flows", "all other active flows",
                [](const FsdReport& f) { return f.mice; }, "log info csv"},
    ReportField{"fsd.weighted_elephants", "flows",
                "elephants, and of potential ones the share min(1, bytes / tau)",
                [](const FsdReport& f) { return f.weighted_elephants; }, "log"},
    ReportField{"fsd.weighted_mice", "flows", "mice and the rest of potential elephants",
                [](const FsdReport& f) { return f.weighted_mice; }, "log"},
    ReportField{"fsd.bins", "flows", "active flows by bytes so far, one bin per doubling",
                [](const FsdReport& f) -> const auto& { return f.bins; }, "log info"},
    ReportField{"fsd.kl", "nats", "divergence from the last interval with traffic",
                [](const FsdReport& f) { return f.kl; }, "log info"},
    ReportField{"fsd.triggered", "", "the divergence exceeds theta",
                [](const FsdReport& f) { return f.triggered; }, "log info"},
    ReportField{"fsd.known", "", "the monitor gives a distribution (mu is 0.5 without)",
                [](const FsdReport& f) { return f.known; }, "log info"},
    ReportField{"fsd.monitor_bytes", "bytes", "what the monitor would have sent over the wire",
                [](const FsdReport& f) { return f.monitor_bytes; }},
    ReportField{"fsd.data_plane_bytes", "bytes", "memory of the counters or sketches of all ToRs",
                [](const FsdReport& f) { return f.data_plane_bytes; }, "log info"},
    ReportField{"fsd.control_plane_bytes", "bytes",
                "the most memory that the flow histories of all ToRs have needed so far",
                [](const FsdReport& f) { return f.control_plane_bytes; }, "log info"},
    ReportField{"fsd.tracked_flows", "flows", "flows in these histories at the end",
                [](const FsdReport& f) { return f.tracked_flows; }, "log info"},
    ReportField{"fsd.untracked_flows", "flows", "flows that found a history full, since the start",
                [](const FsdReport& f) { return f.untracked_flows; }, "log info"},
};

inline constexpr std::tuple kFinishedFields{
    ReportField{"finished.src", "host", "the flow's sender",
                [](const FinishedFlow& f) { return f.src; }, "log"},
    ReportField{"finished.dst", "host", "its receiver", [](const FinishedFlow& f) { return f.dst; },
                "log"},
    ReportField{"finished.ordinal", "flows", "flows of the same sender before it",
                [](const FinishedFlow& f) { return f.ordinal; }},
    ReportField{"finished.workload", "workload", "its generator's number in the scenario",
                [](const FinishedFlow& f) { return f.workload; }},
    ReportField{"finished.bytes", "bytes", "its payload",
                [](const FinishedFlow& f) { return f.bytes; }, "log"},
    ReportField{"finished.start_ps", "ps", "when it started",
                [](const FinishedFlow& f) { return f.start; }, "log"},
    ReportField{"finished.fct_ps", "ps", "from its start to its last ACK",
                [](const FinishedFlow& f) { return f.fct; }, "log"},
    ReportField{"finished.ideal_fct_ps", "ps", "the same alone in the network",
                [](const FinishedFlow& f) { return f.ideal; }, "log"},
};

// in reports of scenarios with jobs alone
inline constexpr std::tuple kJobSpanFields{
    ReportField{"job_spans.workload", "workload", "the job's number in the scenario",
                [](const JobSpan& s) { return s.workload; }, "", false},
    ReportField{"job_spans.label", "label", "a label of its graph; 0 and host -1: a round of it",
                [](const JobSpan& s) { return s.label; }, "", false},
    ReportField{"job_spans.host", "host", "where all nodes with the label are done",
                [](const JobSpan& s) { return s.host; }, "", false},
    ReportField{"job_spans.begin_ps", "ps", "when the first of them started",
                [](const JobSpan& s) { return s.begin; }, "", false},
    ReportField{"job_spans.end_ps", "ps", "when the last of them was done",
                [](const JobSpan& s) { return s.end; }, "", false},
};

// the part of a name behind its table's: "kl" of "fsd.kl"
constexpr const char* last_name(const char* name) {
  const std::string_view text(name);
  const std::size_t dot = text.rfind('.');
  return name + (dot == std::string_view::npos ? 0 : dot + 1);
}

// f(number, row) for so many ports of the report, the first ones; rows are made on the way
template <class Field>
auto of_port(const Field& field, const Topology& topology, const std::vector<PortReport>& ports) {
  return [&](std::size_t i) { return field.get(PortRow{topology, static_cast<int>(i), ports[i]}); };
}

}  // namespace dcqcn
