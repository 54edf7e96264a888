// Dolce-RC+ (Ye et al., algorithm 3): a flow is cut into messages of 8 KB, and DR-UCB chooses the
// rate of each from C/2^(K-1), ..., C/2, C. Data packets carry the message's number, its arm and
// when its first packet left; the receiver counts marks and returns all of it with the ACK of the
// last packet, which rewards the arm by (ideal/actual completion time) x (1 - ECN ratio)^arm
// (equation 5). No CNPs. docs/reference/decisions.md has what the paper leaves open.
#pragma once

#include "model/schemes/dolce_connections.hpp"
#include "model/schemes/dolce_plus_knobs.hpp"
#include "model/schemes/scheme_of.hpp"

namespace dcqcn {

class DolcePlus : public SchemeBase {
 public:
  static constexpr const char* kName = "dolce-rc-plus";
  static constexpr auto& kKnobs = kDolcePlusKnobs;
  enum Counter : std::uint8_t { kMessages, kArm0 };
  static constexpr std::array kCounters = {"messages", "rate_0", "rate_1", "rate_2", "rate_3",
                                           "rate_4",   "rate_5", "rate_6", "rate_7"};
  enum Event : std::uint8_t { kMessage };
  static constexpr std::array kEvents = {"message"};
  static constexpr std::array kEventValues = {"rate", "mct", "ecn_ratio", "reward"};

  using Setting = DolcePlusSetting;
  struct Memory {
    DrUcb learner;
    Time shortest = kNever;  // round trip of a packet
  };
  struct DataFields {
    Time departure = 0;        // of the message's first packet
    std::uint32_t number = 0;  // of the message in its queue pair, from 1; 0: no fields
    std::uint8_t arm = 0;
    bool ends = false;
  };
  struct AckFields {  // of the last message that ended
    Time departure = 0;
    Bytes bytes = 0;
    std::uint32_t number = 0;
    std::uint32_t packets = 0;
    std::uint32_t marked = 0;
    std::uint8_t arm = 0;
  };
  struct Sender {
    Rate line = 0;
    Rate rate = 0;
    Bytes left = 0;             // of the message
    DataFields message;         // that is being sent
    std::uint32_t learned = 0;  // number of the last message that was rewarded
    ConnectionMemory<Memory> connection;
  };
  struct Receiver {
    AckFields arriving;
    AckFields ended;
  };
  struct Nic {
    ConnectionMemories<Memory> connections;
    void visit(Archive& a) { a.all<Nic>(connections); }
  };

  DolcePlus(const SchemeSpec& spec, const Transport&)
      : shared_(spec.choice("memory", {"pair", "qp"}) == "pair") {
    spec.allow({"memory"});
  }

  // ---- sender ----
  void start(Sender& q, const Here<DolcePlus>& at) {
    q.line = q.rate = at.connection.line;
    if (shared_) q.connection.place = at.nic.connections.share(at.connection, Memory{});
  }
  Pace pace(const Sender& q, const Setting&) const { return {q.rate, q.rate}; }
  void on_send(Sender& q, const Sent& sent, DataFields& fields, const Here<DolcePlus>& at) {
    if (q.left <= 0) begin(q, at);
    q.left -= sent.payload;
    q.message.ends = q.left <= 0 || sent.last;
    if (q.message.ends) q.left = 0;
    fields = q.message;
  }
  void on_ack(Sender& q, const Acked& acked, const AckFields& ack, const Here<DolcePlus>& at) {
    Memory& m = at.nic.connections.of(q.connection);
    if (acked.rtt > 0) m.shortest = std::min(m.shortest, acked.rtt);
    if (ack.number <= q.learned || m.shortest == kNever) return;
    q.learned = ack.number;
    reward(q, m, ack, at);
  }

  // ---- receiver ----
  void on_data(Receiver& r, const Arrived& arrived, const DataFields& data,
               const Here<DolcePlus>&) {
    if (data.number == 0) return;
    if (data.number != r.arriving.number) {
      r.arriving = {data.departure, 0, data.number, 0, 0, data.arm};
    }
    r.arriving.bytes += arrived.payload;
    ++r.arriving.packets;
    r.arriving.marked += arrived.marked;
    if (data.ends) r.ended = r.arriving;
  }
  void on_reply(Receiver& r, AckFields& ack, const Here<DolcePlus>&) { ack = r.ended; }

 private:
  static Rate rate_of_arm(Rate line, int arm, const Setting& s) {
    return std::max<Rate>(line >> std::max(s.rules.arms - 1 - arm, 0), 1);
  }

  // Until every arm has given a reward the highest rate stands in, except for turns: the first
  // messages of a connection leave before any reward can have come.
  void begin(Sender& q, const Here<DolcePlus>& at) const {
    DrUcb& learner = at.nic.connections.of(q.connection).learner;
    const UcbRules& rules = at.setting.rules;
    const bool known = learner.turning(rules) || learner.ready(rules);
    const int arm = known ? learner.choose(rules) : rules.arms - 1;
    learner.advance(rules);
    q.message = {at.now, q.message.number + 1, static_cast<std::uint8_t>(arm), false};
    q.left = at.setting.message;
    q.rate = rate_of_arm(q.line, arm, at.setting);
    at.notes.count(kArm0 + static_cast<unsigned>(arm));
  }

  // pacing_gap of a message: from 1.15 MB on the product needs more than 64 bits
  static Time long_gap(Bytes bytes, Rate rate) {
    const __int128 bits = static_cast<__int128>(bytes) * 8 * kPicosPerSecond;
    return static_cast<Time>((bits + rate - 1) / rate);
  }

  // ideal: the payload at line rate, and the shortest round trip that a packet has had
  void reward(const Sender& q, Memory& m, const AckFields& ack, const Here<DolcePlus>& at) const {
    const Bytes before_last = ack.bytes - ack.bytes / ack.packets;
    const Time ideal = long_gap(before_last, q.line) + m.shortest;
    const Time actual = at.now - ack.departure;
    const double ecn = static_cast<double>(ack.marked) / static_cast<double>(ack.packets);
    double x = std::min(static_cast<double>(ideal) / static_cast<double>(actual), 1.0);
    for (int i = 0; i < ack.arm; ++i) x *= 1.0 - ecn;
    m.learner.learn(at.setting.rules, ack.arm, x);
    at.notes.count(kMessages);
    if (!at.notes.tracing) return;
    const Rate rate = rate_of_arm(q.line, ack.arm, at.setting);
    at.notes.trace(at.connection, at.now, kMessage,
                   {static_cast<double>(rate), static_cast<double>(actual) * 1e-12, ecn, x});
  }

  bool shared_;
};

}  // namespace dcqcn
