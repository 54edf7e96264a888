// The end points: queue pairs with their messages, go-back-N, and the hand-over to the schemes of
// the NICs. Engines move the packets; nothing here has a clock.
#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "model/base/archive.hpp"
#include "model/base/metrics.hpp"
#include "model/base/prefetch.hpp"
#include "model/base/ring.hpp"
#include "model/fabric/packet.hpp"
#include "model/fabric/topology.hpp"
#include "model/flows/queue_pair.hpp"
#include "model/flows/tcp.hpp"
#include "model/flows/workload.hpp"
#include "model/schemes/nic_schemes.hpp"
#include "model/text/scenario.hpp"

namespace dcqcn {

// control packets that an arrival or a tick makes a host send, in this order
struct Replies {
  Packet packets[2];
  int count = 0;
  bool cnp_delayed = false;  // packets[0] is a CNP that leaves Transport::cnp_delay later

  // later(packet): cnp_delay from now; now(packet): at once
  template <class Later, class Now>
  void hand_over(Later&& later, Now&& now) const {
    for (int i = 0; i < count; ++i) {
      if (i == 0 && cnp_delayed) {
        later(packets[i]);
      } else {
        now(packets[i]);
      }
    }
  }
};

// one of them, besides what all to one queue pair share
struct Reply {
  Kind kind = Kind::kAck;
  Bytes bytes = 0;
  std::uint64_t sent = 0;
  std::uint32_t seq = 0;
  bool cnp = false;
};

// what the engine has to do with a queue pair after a control packet or a timer
enum class Then : std::uint8_t {
  kNothing,
  kGone,       // it has no work left: its place in the NIC is free
  kLookAgain,  // it may send again, or may send more
  kArm,        // its retransmission timer is to be armed for Qp::rto_at
};

// what left of a message at once, for an engine that does not move packets
struct BulkSent {
  Bytes bytes = 0;  // on the wire
  Bytes payload = 0;
  std::uint64_t packets = 0;
  bool last = false;  // of the message
};

// packets by which a flow without an end is ahead of what it has sent, at least one
inline constexpr std::uint32_t kStretch = 1u << 16;

// so many queue pairs, of about 500 bytes with both ends, are more than the nearer caches hold
inline constexpr std::size_t kCrowd = 1000;

class TransportLayer {
 public:
  TransportLayer(const Scenario& scenario, const Topology& topology, FlowSource& source,
                 IntervalLog& log);

  // ---- settings ----
  const NicSchemes& schemes() const { return schemes_; }
  NicSchemes& schemes() { return schemes_; }
  void change_settings(const NicSettings& settings, Time now);
  // can anything but an ACK open the window of a queue pair?
  bool windowed() const { return windowed_; }

  // ---- sender ----
  // queue the flow's messages; returns the slot of its QP
  std::uint32_t start_flow(const FlowStart& flow, Time now);
  Qp& qp(std::uint32_t slot) { return qps_[slot]; }
  Qp* find(std::uint32_t ref) {  // null: the QP is gone, the packet is a late stray
    Qp& q = qps_[ref & kSlotMask];
    return q.ref == ref && q.live ? &q : nullptr;
  }
  std::uint32_t slots() const { return static_cast<std::uint32_t>(qps_.size()); }

  bool may_send(const Qp& q) const { return q.may_send(); }
  // the packet that starts on the wire at `now`; sets the time of the next one
  Packet send(Qp& q, Time now) {
    if (q.resting) return send_asking(q, now, [&q](const Sent&) { return Pace{q.rate, q.rate}; });
    if (is_tcp(q.priority)) return send_tcp(q, now);
    return schemes_.of(q.src).send(*this, q, now);
  }
  template <class Ask>
  Packet send_asking(Qp& q, Time now, Ask&& ask);
  // ACK, NACK or CNP for `q`, which find() gave
  Then on_control(Qp& q, const Packet& p, Time now);
  // ACK or NACK: true if the QP has nothing left to do and is gone (its NIC place is free)
  bool on_ack(Qp& q, const Packet& p, Time now);
  void on_cnp(Qp& q, const Packet& p, Time now) {
    q.resting = false;
    const Time key = static_cast<Time>(p.sent);
    set_pace(q, schemes_.of(q.src).on_cnp(slot_of(q.ref), q.src, key, now));
  }
  // a NACK or a timeout says that a packet of `q` was lost
  void on_loss(Qp& q, Time now) {
    if (!transport_.loss_cuts) return;
    q.resting = false;
    set_pace(q, schemes_.of(q.src).on_loss(slot_of(q.ref), q.src, now));
  }
  // retransmission timer (only where packets can be lost)
  bool lossy() const { return lossy_; }
  // after a packet was sent: true if the timer has to be armed for Qp::rto_at
  bool must_arm(Qp& q) const { return lossy_ && !std::exchange(q.rto_armed, true); }
  // go back if nothing was acknowledged for so long: true if it did
  bool on_rto(Qp& q, Time now);
  // the armed timer ran out
  Then on_timer(Qp& q, Time now);

  bool crowded() const { return qps_.size() > kCrowd; }
  // fetch what the arrival of this packet will touch
  void prefetch(const Packet& p) const {
    const std::uint32_t slot = slot_of(p.qp);
    if (p.is_data()) {
      prefetch_all(receivers_[slot]);
      return;
    }
    prefetch_all(qps_[slot]);
    if (p.type() == Kind::kCnp) schemes_.of(p.dst).prefetch(slot);
  }

  // ---- receiver ----
  void on_data(const Packet& p, int host, Time now, Replies& replies);
  // ---- NIC ----
  void on_pause(int host, unsigned priority, bool paused, Time now);
  // when the scheme of this NIC wants tick() to be called; never in the past
  const Time& next_tick(int host) const { return tick_at_[static_cast<std::size_t>(host)]; }
  bool ticks() const { return ticks_; }
  void tick(int host, Time now, Replies& replies);

  // what the arrivals so far make their hosts send at this instant; the engine takes it
  std::vector<FlowStart> chained;

  // flows that will finish and have not yet, and flows without an end
  std::uint64_t live_flows() const { return live_messages_; }
  std::uint64_t unlimited_flows() const { return unlimited_; }
  // f(qp, message) for every flow of either kind, by QP slot
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
    if (is_tcp(q.priority)) return q.rate;
    return schemes_.of(q.src).pace_at(slot_of(q.ref), now).pacing;
  }
  Time cnp_delay() const { return transport_.cnp_delay; }
  std::uint32_t flow_key(std::uint32_t ref) const { return flow_keys_[ref & kSlotMask]; }

  // ---- transport_bulk.cpp: bytes instead of packets ----
  // the message whose bytes are next; null: none is left. And what it is on the wire
  const Message* message_to_send(const Qp& q) const;
  Bytes wire_bytes_of(const Message& m) const;
  // bytes of it have left up to `now`: what paces the queue pair from now on
  Rate sent_bytes(Qp& q, const BulkSent& sent, Time now);
  Rate pacing(const Qp& q) const { return schemes_.of(q.src).pace(slot_of(q.ref)).pacing; }
  // the message of the queue pair that ends there and is not acknowledged yet
  const Message& message_ending(std::uint32_t ref, std::uint32_t end_seq) const;
  // all of it has: the sequence number that ends it
  std::uint32_t sent_message(Qp& q);
  // a marked packet comes to the receiver: does a CNP leave? No mark is answered before quiet_until
  bool marked_bytes(Qp& q, Time now, Time& quiet_until);
  void cnp_arrived(Qp& q, Time now) {
    q.resting = false;
    set_pace(q, schemes_.of(q.src).on_cnp(slot_of(q.ref), q.src, now, now));
  }
  // the last byte of a message has come; its ACK is back: true if the queue pair is gone
  void message_arrived(Qp& q, std::uint32_t end_seq, Time now);
  bool message_acked(Qp& q, std::uint32_t end_seq, Time now);

  // ---- threads ----
  // Hosts run at the same time, each in the thread of its lane: counts go to the lane's own totals
  // until they are gathered.
  void use_lanes(std::vector<std::uint8_t> lane_of_host, std::size_t lanes);
  void gather_totals();
  // may hosts run at the same time at all, but for what waits_its_turn()?
  bool hosts_apart() const;
  // does the arrival end a message, which touches what all hosts share?
  bool waits_its_turn(const Packet& p) {
    if (p.is_data()) return p.last;
    if (p.type() == Kind::kCnp) return false;
    const Qp* q = find(p.qp);
    return q && q->first_message != kNone && static_cast<std::int32_t>(q->message_end - p.seq) <= 0;
  }

  // move the round-trip samples of living QPs into the log (end of an interval)
  void flush_rtts();

  void visit(Archive& a) {
    constexpr Built<void*, void*, void*, void*> kReferences{};
    a.all<TransportLayer>(chained, kReferences, built(wire_), built(transport_), built(lossy_),
                          qps_, receivers_, schemes_, built(windowed_), built(ticks_),
                          built(hears_data_), built(hears_acks_), built(writes_acks_),
                          built(hears_pauses_), built(hears_ends_), flow_keys_, probe_at_,
                          free_qps_, messages_, free_messages_, next_ordinal_, built(line_),
                          tick_at_, pairs_, built(lane_of_host_), built(lanes_), live_messages_,
                          unlimited_, built(tcp_classes_), tcp_, early_, retired_);
  }

 private:
  struct alignas(kCacheLine) LaneTotals {
    Totals totals;
  };
  Totals& totals(int host) {
    if (lanes_.empty()) return log_.totals;
    return lanes_[lane_of_host_[static_cast<std::size_t>(host)]].totals;
  }
  void set_pace(Qp& q, const Pace& pace) {
    q.rate = pace.rate;
    if (windowed_) q.window = window_of(q);
  }
  // its scheme lets it rest, and its rate says all about its pace
  void let_rest(Qp& q, const Pace& pace) {
    q.resting = pace.rate == pace.pacing && schemes_.of(q.src).resting(slot_of(q.ref));
  }
  std::uint32_t window_of(const Qp& q) const;
  void refresh_senders(int host);
  void note_tick(int host, Time now) {
    if (ticks_) note_next_tick(host, now);
  }
  void note_next_tick(int host, Time now);
  std::uint32_t free_slot(Time now);
  std::uint32_t open_qp(const FlowStart& flow, std::uint32_t ordinal, Time now);
  void start_scheme(Qp& q, std::uint32_t workload, std::uint16_t number, Time now);
  void tell_ack(Qp& q, const Packet& p, Time now);
  void add_message(Qp& q, const FlowStart& flow, std::uint32_t ordinal, Time now);
  std::uint32_t free_message();  // the place of a new one
  // a flow without an end, the only message of its queue pair: sequence numbers wrap
  void stretch(Qp& q) { q.end_seq = q.message_end = messages_[q.send_message].end_seq += kStretch; }
  void complete(Qp& q, Message& m, Time now);
  void take_acked(Qp& q, std::uint32_t seq, Time now);
  bool end_if_idle(Qp& q, Time now);
  void go_back(Qp& q);

  // ---- transport_tcp.cpp: flows of a class with transport = "tcp" ----
  bool is_tcp(unsigned priority) const { return tcp_classes_ >> priority & 1; }
  void start_tcp(Qp& q);
  Packet send_tcp(Qp& q, Time now);
  void on_tcp_ack(Qp& q, const Packet& p, Time now);
  void on_tcp_timeout(Qp& q, Time now);
  void on_tcp_data(QpReceiver& r, const Packet& p, int host, Time now, Replies& replies);
  void rewind(Qp& q);
  void put_forward(Qp& q);
  void take_rtt(Qp& q, Time sent, Time now);
  void flush_rtt(Qp& q);
  std::uint32_t tag_of_arrived(const QpReceiver& r) const;
  void accept(QpReceiver& r, const Packet& p, int host, Time now);
  bool wants_cnp(QpReceiver& r, const Packet& p, int host, bool in_order, bool may_answer,
                 Time now);
  static void add_reply(const QpReceiver& r, const Reply& reply, Replies& replies);
  void add_cnp(const QpReceiver& r, Time now, Replies& replies);
  Bytes payload_of(const Packet& p) const { return p.bytes - wire_.data_overhead; }

  const Scenario& scenario_;
  const Topology& topology_;
  FlowSource& source_;
  IntervalLog& log_;
  Wire wire_;
  Transport transport_;
  bool lossy_;
  std::vector<Qp> qps_;
  std::vector<QpReceiver> receivers_;  // same slots
  NicSchemes schemes_;
  bool windowed_;
  bool ticks_;
  bool hears_data_;
  bool hears_acks_;
  bool writes_acks_;
  bool hears_pauses_;
  bool hears_ends_;
  std::vector<std::uint32_t> flow_keys_;  // same slots; what monitors know flows by, never 0
  std::vector<Time> probe_at_;  // same slots: when the next probe may start; empty without probes
  std::vector<std::uint32_t> free_qps_;
  std::vector<Message> messages_;
  std::vector<std::uint32_t> free_messages_;
  std::vector<std::uint32_t> next_ordinal_;                 // per source
  std::vector<Rate> line_;                                  // per host
  std::vector<Time> tick_at_;                               // per host
  std::unordered_map<std::uint64_t, std::uint32_t> pairs_;  // qp = "pair"
  std::vector<std::uint8_t> lane_of_host_;
  std::vector<LaneTotals> lanes_;  // none: one thread
  std::uint64_t live_messages_ = 0;
  std::uint64_t unlimited_ = 0;
  struct TcpFlow {
    TcpSender sender;
    std::uint32_t loss_end = 0;  // one past what had been sent when the last loss was seen
    std::uint32_t resume = 0;    // goes on here after one packet from before, if `rewound`
    bool rewound = false;
  };
  std::uint8_t tcp_classes_;                // bit per priority
  std::vector<TcpFlow> tcp_;                // same slots, where there are such classes
  std::vector<std::vector<Packet>> early_;  // the same: what came before a packet that is missing
  struct Retired {
    Time when;
    std::uint32_t slot;
  };
  Ring<Retired> retired_;  // ended ones, whose receivers still answer what was sent twice
};

// ask(Sent) tells the scheme and returns its pace. Inline, so that each scheme has a sender of its
// own: this is the path that every packet takes.
template <class Ask>
[[gnu::always_inline]] inline Packet TransportLayer::send_asking(Qp& q, Time now, Ask&& ask) {
  const Message& m = messages_[q.send_message];
  if (q.next_seq + 1 == m.end_seq && m.bytes == kUnlimited) stretch(q);
  const Bytes before = static_cast<Bytes>(q.next_seq - m.first_seq) * wire_.payload;
  const Bytes payload = std::min(wire_.payload, m.bytes - before);
  const Bytes bytes = payload + wire_.data_overhead;
  const Pace pace =
      ask(Sent{payload, q.next_seq + 1 == m.end_seq, q.next_seq != q.sent_seq, bytes});
  set_pace(q, pace);
  if (pace.pacing != q.gap_rate || bytes != Bytes{q.gap_bytes}) {
    q.gap_rate = pace.pacing;
    q.gap_bytes = static_cast<std::uint16_t>(bytes);
    q.gap = pacing_gap(bytes, pace.pacing);
  }
  q.next_send = now + q.gap;
  q.sent_bytes += bytes;

  if (lossy_ && q.next_seq == q.unacked) q.rto_at = now + transport_.rto;

  PacketFlags flags;
  flags.priority = q.priority & 7u;
  const std::uint32_t seq = q.next_seq++;
  flags.retransmit = q.next_seq - q.sent_seq != 1;
  if (!flags.retransmit) q.sent_seq = q.next_seq;
  if (q.next_seq == m.end_seq) {
    flags.last = true;
    q.send_message = m.next;
  }
  Packet p;
  write_packet(p, static_cast<std::uint64_t>(now), flags, q.ref, seq,
               packet_address(q.dst, bytes, q.entropy));
  ++totals(q.src).data_packets;
  return p;
}

[[gnu::always_inline]] inline Then TransportLayer::on_control(Qp& q, const Packet& p, Time now) {
  if (p.type() == Kind::kCnp) {
    on_cnp(q, p, now);
  } else {
    if (on_ack(q, p, now)) return Then::kGone;
    if (p.cnp) on_cnp(q, p, now);
  }
  note_tick(q.src, now);
  return Then::kLookAgain;  // a window may have opened, or the sender went back
}

inline void TransportLayer::take_acked(Qp& q, std::uint32_t seq, Time now) {
  q.unacked = seq;
  while (q.first_message != kNone && static_cast<std::int32_t>(q.message_end - q.unacked) <= 0) {
    complete(q, messages_[q.first_message], now);
  }
  // a late ACK may overtake a sender that went back
  if (static_cast<std::int32_t>(q.next_seq - q.unacked) < 0) go_back(q);
}

inline void TransportLayer::accept(QpReceiver& r, const Packet& p, int host, Time now) {
  ++r.expected;
  totals(host).delivered += payload_of(p);
  if (!p.last) return;
  // once everything is here duplicates need no answer, since ACKs are never lost
  if (r.messages_left > 0) r.complete = --r.messages_left == 0;
  if (r.complete && hears_ends_ && !is_tcp(r.priority)) {
    schemes_.of(host).on_complete(slot_of(r.ref), now);
    note_tick(host, now);
  }
  if (reacts(scenario_.workloads[r.workload].pattern)) {
    source_.arrived(r.workload, tag_of_arrived(r), host, now, chained);
  }
}

inline void TransportLayer::add_reply(const QpReceiver& r, const Reply& reply, Replies& replies) {
  PacketFlags flags;
  flags.kind = reply.kind;
  flags.priority = r.priority & 7u;
  flags.cnp = reply.cnp;
  write_packet(replies.packets[replies.count++], reply.sent, flags, r.ref, reply.seq,
               packet_address(r.src, reply.bytes, r.entropy));
}

}  // namespace dcqcn
