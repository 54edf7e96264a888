// TIMELY (Mittal et al., SIGCOMM 2015, algorithm 1): the sender's rate follows the gradient of the
// round trips that its ACKs show. Neither switches nor receivers take part; marks mean nothing.
//
// The rate is updated after a segment's worth of packets has been acknowledged, but at most once
// in a minimal round trip (the update interval of Zhu et al., CoNEXT 2016). Round trips and their
// smoothed difference are whole picoseconds. Packets are spaced one by one, or, as in the paper,
// a segment leaves at line rate and the next one waits until it would have ended at the rate.
// docs/reference/decisions.md has what the paper leaves open.
#pragma once

#include <algorithm>

#include "model/schemes/scheme_of.hpp"
#include "model/schemes/timely_knobs.hpp"

namespace dcqcn {

class Timely : public SchemeBase {
 public:
  static constexpr const char* kName = "timely";
  static constexpr auto& kKnobs = kTimelyKnobs;
  enum Counter : std::uint8_t { kCuts, kIncreases };
  static constexpr std::array kCounters = {"cuts", "increases"};
  enum Event : std::uint8_t { kCut, kIncrease };
  static constexpr std::array kEvents = {"cut", "increase"};
  static constexpr std::array kEventValues = {"rate", "rtt", "gradient", "stage"};

  using Setting = TimelySetting;
  struct Sender {
    Rate line = 0;
    Rate rate = 0;
    Time previous = 0;          // round trip of the last update; 0: there was none
    Time difference = 0;        // smoothed
    Time next_update = 0;       // not before
    std::uint32_t packets = 0;  // acknowledged since the last update
    std::uint32_t stage = 0;    // updates in a row whose gradient was not positive
    std::uint32_t burst = 0;    // packets of the segment that is leaving
    Time burst_end = 0;         // when it would have left at the rates so far
    Time next_send = 0;
  };

  Timely(const SchemeSpec& spec, const Transport&) {
    spec.allow({"pacing"});
    segments_ = spec.choice("pacing", {"packet", "segment"}) == "segment";
  }

  void start(Sender& q, const Here<Timely>& at) {
    q.line = at.connection.line;
    q.rate = at.setting.start_rate > 0 ? bounded(at.setting.start_rate, q, at.setting) : q.line;
    q.next_update = at.now + at.setting.min_rtt;
  }
  Pace pace(const Sender& q, const Setting&) const { return {q.rate, q.rate}; }
  void change_setting(Sender& q, const Setting&, const Here<Timely>& at) {
    q.rate = bounded(q.rate, q, at.setting);
  }
  bool resting(const Sender&) const { return !segments_; }
  void on_send(Sender& q, const Sent& sent, NoFields&, const Here<Timely>& at) {
    if (!segments_) return;
    if (q.burst == 0) q.burst_end = at.now;
    q.burst_end += pacing_gap(sent.bytes, q.rate);
    q.next_send = at.now + pacing_gap(sent.bytes, q.line);
    if (++q.burst < at.setting.segment && !sent.last) return;
    q.next_send = std::max(q.next_send, q.burst_end);
    q.burst = 0;
  }
  Time next_send(const Sender& q, Time paced) const { return segments_ ? q.next_send : paced; }
  void on_ack(Sender& q, const Acked& acked, NoFields, const Here<Timely>& at) {
    q.packets += acked.packets;
    if (acked.rtt == 0 || q.packets < at.setting.segment || at.now < q.next_update) return;
    q.packets = 0;
    q.next_update = at.now + at.setting.min_rtt;
    update(q, acked.rtt, at);
  }

 private:
  bool segments_ = false;

  static Rate bounded(Rate rate, const Sender& q, const Setting& s) {
    return std::min(std::max(rate, s.min_rate), q.line);
  }

  // (1 - weight) * old + weight * fresh, rounded down
  static Time smoothed(Time old, Time fresh, std::int64_t weight) {
    return (old * (1024 - weight) + fresh * weight) >> 10;
  }

  void update(Sender& q, Time rtt, const Here<Timely>& at) const {
    const Setting& s = at.setting;
    const Time fresh = q.previous > 0 ? rtt - q.previous : 0;
    q.previous = rtt;
    q.difference = smoothed(q.difference, fresh, s.weight);
    q.stage = q.difference <= 0 ? q.stage + 1 : 0;
    if (rtt < s.t_low) {
      increase(q, s.step, at);
    } else if (rtt > s.t_high) {
      cut(q, s.beta * (1.0 - static_cast<double>(s.t_high) / static_cast<double>(rtt)), at);
    } else if (q.difference <= 0) {
      increase(q, q.stage > s.hai_after ? std::min(s.step, q.line) * s.hai_factor : s.step, at);
    } else {
      cut(q, s.beta * gradient(q, s), at);
    }
  }
  static double gradient(const Sender& q, const Setting& s) {
    return static_cast<double>(q.difference) / static_cast<double>(s.min_rtt);
  }

  static void increase(Sender& q, Rate step, const Here<Timely>& at) {
    q.rate = bounded(q.rate + std::min(step, q.line), q, at.setting);
    tell(q, kIncreases, kIncrease, at);
  }
  static void cut(Sender& q, double part, const Here<Timely>& at) {
    const double kept = 1.0 - std::min(part, at.setting.max_cut);
    q.rate = bounded(static_cast<Rate>(static_cast<double>(q.rate) * kept), q, at.setting);
    q.stage = 0;
    tell(q, kCuts, kCut, at);
  }
  static void tell(const Sender& q, Counter counter, Event event, const Here<Timely>& at) {
    at.notes.count(counter);
    if (!at.notes.tracing) return;
    at.notes.trace(at.connection, at.now, event,
                   {static_cast<double>(q.rate), static_cast<double>(q.previous) * 1e-12,
                    gradient(q, at.setting), static_cast<double>(q.stage)});
  }
};

}  // namespace dcqcn
