// The end points: queue pairs with their messages, go-back-N, the notification point (NP), and
// the hand-over to the reaction point. Engines move the packets; nothing here has a clock.
#pragma once

#include <unordered_map>
#include <vector>

#include "model/metrics.hpp"
#include "model/packet.hpp"
#include "model/reaction_point.hpp"
#include "model/scenario.hpp"
#include "model/topology.hpp"
#include "model/workload.hpp"

namespace dcqcn {

inline constexpr std::uint32_t kNone = ~0u;

// the sender's half of a queue pair
struct Qp {
  Time next_send = 0;  // pacing: no packet may start before
  ReactionPoint rp;
  std::uint32_t next_seq = 0;
  std::uint32_t sent_seq = 0;     // one past the highest packet ever sent
  std::uint32_t unacked = 0;      // oldest packet without an ACK
  std::uint32_t message_end = 0;  // end_seq of first_message
  Bytes gap_bytes = 0;            // cached pacing gap: of a packet of this size
  Rate gap_rate = 0;              // at this rate
  Time gap = 0;
  std::uint32_t end_seq = 0;  // one past the last packet of all queued messages
  std::uint32_t send_message = kNone;
  std::uint32_t first_message = kNone;
  std::uint32_t last_message = kNone;
  std::uint32_t ref = 0;  // slot and generation, as in Packet::qp
  std::uint16_t src = 0;
  std::uint16_t dst = 0;
  std::uint16_t entropy = 0;
  std::uint16_t priority = 3;
  std::uint32_t nic_slot = kNone;  // the engine's place for it in the round robin
  bool live = false;
  bool rto_armed = false;
  Time rto_at = kNever;
  Time base_rtt = 0;
  Time rtt_sum = 0;  // of the interval
  std::uint64_t rtt_count = 0;

  bool has_bytes() const { return next_seq != end_seq; }
};

// the receiver's half; what it does depends on nothing but what has arrived
struct QpReceiver {
  std::uint32_t ref = 0;
  std::uint32_t expected = 0;
  std::uint32_t nack_seq = kNone;
  Time nack_again = 0;
  Time next_cnp = 0;
  std::uint16_t entropy = 0;  // of the reverse direction
  std::uint16_t src = 0;
  std::uint32_t workload = 0;
  std::uint32_t messages_left = 0;  // 0 on a kept QP
  bool complete = false;            // everything has come; whatever else comes is a late duplicate
};

struct Message {
  Bytes bytes = 0;
  Time start = 0;
  Time ideal = 0;
  std::uint32_t first_seq = 0;
  std::uint32_t end_seq = 0;
  std::uint32_t ordinal = 0;
  std::uint32_t workload = 0;
  std::uint32_t next = kNone;
};

// control packets that an arrival makes the receiving host send, in this order
struct Replies {
  Packet packets[2];
  int count = 0;
  bool cnp_delayed = false;  // packets[0] is a CNP that leaves Transport::cnp_delay later
};

class TransportLayer {
 public:
  TransportLayer(const Scenario& scenario, const Topology& topology, FlowSource& source,
                 IntervalLog& log);

  // ---- settings ----
  const NicSetting& setting(int host) const { return settings_[static_cast<std::size_t>(host)]; }
  void change_settings(const std::vector<NicSetting>& settings, Time now);

  // ---- sender ----
  // queue the flow's messages; returns the slot of its QP
  std::uint32_t start_flow(const FlowStart& flow, Time now);
  Qp& qp(std::uint32_t slot) { return qps_[slot]; }
  Qp* find(std::uint32_t ref) {  // null: the QP is gone, the packet is a late stray
    Qp& q = qps_[ref & kSlotMask];
    return q.ref == ref && q.live ? &q : nullptr;
  }
  static std::uint32_t slot_of(std::uint32_t ref) { return ref & kSlotMask; }
  std::uint32_t slots() const { return static_cast<std::uint32_t>(qps_.size()); }

  // may this QP start a packet, leaving pacing and pauses aside?
  bool may_send(const Qp& q) const {
    return q.has_bytes() && (transport_.window == 0 || in_window(q));
  }
  // the packet that starts on the wire at `now`; sets the time of the next one
  Packet send(Qp& q, Time now);
  // ACK or NACK: true if the QP has nothing left to do and is gone (its NIC place is free)
  bool on_ack(Qp& q, const Packet& p, Time now);
  void on_cnp(Qp& q, Time now) { q.rp.on_cnp(settings_[q.src], transport_.rp, now); }
  // retransmission timer (only where packets can be lost): true if the QP went back
  bool on_rto(Qp& q, Time now);
  bool lossy() const { return lossy_; }

  // ---- receiver ----
  void on_data(const Packet& p, int host, Time now, Replies& replies);
  // ring collectives: what the arrivals so far make their hosts send; the engine takes it
  std::vector<FlowStart> chained;

  std::uint64_t live_flows() const { return live_messages_; }
  // f(qp, message) for every flow that has not finished, by QP slot
  template <class F>
  void for_each_live(F&& f) const {
    for (const Qp& q : qps_) {
      if (!q.live) continue;
      for (std::uint32_t m = q.first_message; m != kNone; m = messages_[m].next) {
        f(q, messages_[m]);
      }
    }
  }
  // the rate that paces a QP, up to everything before `now`; leaves the lazy timers alone
  Rate rate_at(const Qp& q, Time now) const {
    ReactionPoint rp = q.rp;
    const NicSetting& s = setting(q.src);
    rp.catch_up(s, now - 1);
    return rp.pacing_rate(s);
  }
  Time cnp_delay() const { return transport_.cnp_delay; }
  std::uint32_t flow_key(std::uint32_t ref) const { return flow_keys_[ref & kSlotMask]; }

  // move the round-trip samples of living QPs into the log (end of an interval)
  void flush_rtts();

 private:
  static constexpr std::uint32_t kSlotBits = 22;
  static constexpr std::uint32_t kSlotMask = (1u << kSlotBits) - 1;

  bool in_window(const Qp& q) const;
  std::uint32_t open_qp(const FlowStart& flow, std::uint32_t ordinal);
  void add_message(Qp& q, const FlowStart& flow, std::uint32_t ordinal, Time now);
  void complete(Qp& q, Message& m, Time now);
  void go_back(Qp& q);
  void flush_rtt(Qp& q);
  void chain(const QpReceiver& r, int host, Time now);
  bool cnp_due(QpReceiver& r, int host, Time now);
  Bytes payload_of(const Packet& p) const { return p.bytes - wire_.data_overhead; }

  const Scenario& scenario_;
  const Topology& topology_;
  FlowSource& source_;
  IntervalLog& log_;
  Wire wire_;
  Transport transport_;
  bool lossy_;
  std::vector<NicSetting> settings_;
  std::vector<Qp> qps_;
  std::vector<QpReceiver> receivers_;     // same slots
  std::vector<std::uint32_t> flow_keys_;  // same slots; what monitors know flows by, never 0
  std::vector<std::uint32_t> free_qps_;
  std::vector<Message> messages_;
  std::vector<std::uint32_t> free_messages_;
  std::vector<std::uint32_t> next_ordinal_;                 // per source
  std::vector<Time> port_next_cnp_;                         // per receiving NIC
  std::unordered_map<std::uint64_t, std::uint32_t> pairs_;  // qp = "pair"
  std::vector<std::vector<std::uint32_t>> ring_received_;   // [workload][host], ring workloads
  std::uint64_t live_messages_ = 0;
};

}  // namespace dcqcn
