// What one monitor interval counts. All sums are integers, so the order of counting is free.
#pragma once

#include <algorithm>
#include <vector>

#include "model/base/archive.hpp"
#include "model/base/units.hpp"

namespace dcqcn {

struct Totals {
  std::uint64_t data_packets = 0;
  std::uint64_t acks = 0;
  std::uint64_t cnps = 0;
  std::uint64_t marks = 0;
  std::uint64_t drops = 0;
  std::uint64_t retransmitted = 0;
  std::uint64_t pauses = 0;
  std::uint64_t resumes = 0;
  std::uint64_t hops = 0;
  Bytes delivered = 0;

  void add(const Totals& o) {
    data_packets += o.data_packets;
    acks += o.acks;
    cnps += o.cnps;
    marks += o.marks;
    drops += o.drops;
    retransmitted += o.retransmitted;
    pauses += o.pauses;
    resumes += o.resumes;
    hops += o.hops;
    delivered += o.delivered;
  }
};

struct FinishedFlow {
  int src = 0;
  int dst = 0;
  std::uint32_t ordinal = 0;
  std::uint32_t workload = 0;
  Bytes bytes = 0;
  Time start = 0;
  Time fct = 0;
  Time ideal = 0;
};

// a label of a job at a host: from the start of its first node there to the end of its last one;
// without a label and a host, a round of the job
struct JobSpan {
  Time begin = 0;
  Time end = 0;
  std::uint32_t workload = 0;
  std::uint32_t label = 0;
  int host = -1;
};

// round-trip samples of one ordered host pair
struct RttSum {
  std::uint64_t pair = 0;  // src << 32 | dst
  Time base = 0;           // the smallest, where several paths differ
  Time sum = 0;
  std::uint64_t count = 0;
};

// data packets of one egress port in the interval, and the PFC frames of its link
struct PortCounters {
  Bytes tx_bytes = 0;
  std::uint64_t tx_packets = 0;
  std::uint64_t marked_packets = 0;
  Bytes marked_bytes = 0;
  Bytes max_queue = 0;
  std::uint64_t dropped = 0;
  std::uint64_t pfc_sent = 0;  // pauses and resumes, as the switch decides them
  std::uint64_t pfc_received = 0;
};

class IntervalLog {
 public:
  Totals totals;
  std::vector<FinishedFlow> finished;
  std::vector<JobSpan> job_spans;
  std::vector<RttSum> rtts;  // several entries per pair until sorted()

  void rtt(int src, int dst, Time base, Time sum, std::uint64_t count) {
    rtts.push_back({static_cast<std::uint64_t>(src) << 32 | static_cast<std::uint64_t>(dst), base,
                    sum, count});
  }

  // the order of reports: completions by (finish, src, ordinal), one RTT entry per pair
  void sort() {
    std::sort(finished.begin(), finished.end(), [](const FinishedFlow& a, const FinishedFlow& b) {
      const Time ta = a.start + a.fct, tb = b.start + b.fct;
      if (ta != tb) return ta < tb;
      if (a.src != b.src) return a.src < b.src;
      return a.ordinal < b.ordinal;
    });
    // ECMP paths of unequal delays: the smallest base counts
    std::sort(rtts.begin(), rtts.end(), [](const RttSum& a, const RttSum& b) {
      return a.pair != b.pair ? a.pair < b.pair : a.base < b.base;
    });
    std::size_t kept = 0;
    for (const RttSum& r : rtts) {
      if (kept > 0 && rtts[kept - 1].pair == r.pair) {
        rtts[kept - 1].sum += r.sum;
        rtts[kept - 1].count += r.count;
      } else {
        rtts[kept++] = r;
      }
    }
    rtts.resize(kept);
  }

  void clear() {
    totals = {};
    finished.clear();
    job_spans.clear();
    rtts.clear();
  }

  void visit(Archive& a) { a.all<IntervalLog>(totals, finished, job_spans, rtts); }
};

}  // namespace dcqcn
