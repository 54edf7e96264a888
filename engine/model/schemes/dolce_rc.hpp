// Dolce-RC (Ye et al., algorithm 2): DCQCN's reaction point without its alpha. What a CNP does is
// an arm (alpha, beta): R_T = beta R_C, then R_C = (1 - alpha/2) R_C (equations 1 and 2). Each
// qualified CNP judges the arm in play by the ECN ratio since the last one (equation 4) and lets
// DR-UCB choose the next, for all flows of the connection.
//
// The ECN ratio is had in two ways (section IV-B): ratio=slots, CNPs over the microseconds in which
// data was sent, as NICs can today; ratio=count, marked packets, counted in 7 bits of the CNP, over
// packets sent. arithmetic=fixed learns in the whole numbers of dr_ucb_fixed.hpp.
#pragma once

#include <variant>

#include "model/schemes/dcqcn.hpp"
#include "model/schemes/dolce_connections.hpp"
#include "model/schemes/dolce_knobs.hpp"

namespace dcqcn {

class DolceRc : public SchemeBase {
 public:
  static constexpr const char* kName = "dolce-rc";
  static constexpr auto& kKnobs = kDolceKnobs;
  enum Counter : std::uint8_t { kCuts, kIncreases, kQualified, kArm0 };
  static constexpr std::array kCounters = {"cuts",  "increases", "qualified_cnps", "arm_0",
                                           "arm_1", "arm_2",     "arm_3"};
  enum Event : std::uint8_t { kCut, kIncrease, kJudged };
  static constexpr std::array kEvents = {"cut", "increase", "judged"};
  static constexpr std::array kEventValues = {"rate", "target", "arm", "reward"};
  static constexpr std::uint32_t kMostCounted = 127;  // 7 bits of the CNP's header
  static constexpr Time kSlot = kPicosPerMicro;

  using Setting = DolceSetting;
  struct Memory {
    std::variant<DrUcb, FixedDrUcb> learner;
    int arm = -1;             // in play; -1: no CNP has come yet
    Time judged_at = 0;       // the last qualified CNP
    Time slot_end = 0;        // of the slot in which data was last sent
    std::int64_t sent = 0;    // packets or slots since then
    std::int64_t marked = 0;  // packets or CNPs
  };
  struct Sender {
    ReactionPoint rp;
    Time last_sent = 0;
    ConnectionMemory<Memory> connection;
  };
  struct Receiver {
    Time next_cnp = 0;
    std::uint32_t marked = 0;  // packets that no CNP has told of
  };
  struct Nic {
    Time next_cnp = 0;
    ConnectionMemories<Memory> connections;
    void visit(Archive& a) { a.all<Nic>(next_cnp, connections); }
  };
  struct CnpFields {
    std::uint8_t marked = 1;
  };

  DolceRc(const SchemeSpec& spec, const Transport& transport)
      : count_(spec.choice("ratio", {"slots", "count"}) == "count"),
        shared_(spec.choice("memory", {"pair", "qp"}) == "pair"),
        port_gap_(transport.cnp_port_gap),
        scope_port_(transport.cnp_scope_port) {
    if (spec.choice("arithmetic", {"float", "fixed"}) == "fixed") fresh_.learner = FixedDrUcb{};
    spec.allow({"ratio", "memory", "arithmetic"});
  }

  CnpBits bits_of(const CnpFields& cnp) const { return {count_ ? cnp.marked : std::uint8_t{0}, 0}; }

  // ---- RP ----
  void start(Sender& q, const Here<DolceRc>& at) {
    q.rp.start(at.connection.line);
    q.last_sent = at.now;
    q.connection.own = fresh_;
    if (shared_) q.connection.place = at.nic.connections.share(at.connection, fresh_);
  }
  Pace pace(const Sender& q, const Setting& s) const { return {q.rp.rate, q.rp.pacing_rate(s)}; }
  void catch_up(Sender& q, Time until, const Here<DolceRc>& at) const {
    q.rp.catch_up(at.setting, until, Watch{at});
  }
  void change_setting(Sender& q, const Setting& before, const Here<DolceRc>& at) {
    q.rp.change_setting(before, at.setting, at.now, Watch{at});
  }
  void on_send(Sender& q, const Sent& sent, NoFields&, const Here<DolceRc>& at) {
    const Setting& s = at.setting;
    if (s.idle_reset > 0 && at.now - q.last_sent > s.idle_reset) q.rp.start(at.connection.line);
    q.last_sent = at.now;
    count_sent(at.nic.connections.of(q.connection), at.now);
    q.rp.catch_up(s, at.now, Watch{at});
    q.rp.on_sent(s, sent.payload, at.now, Watch{at});
  }
  void on_cnp(Sender& q, const CnpFields& cnp, const Here<DolceRc>& at) {
    catch_up(q, at.now, at);
    Memory& m = at.nic.connections.of(q.connection);
    m.marked += count_ ? cnp.marked : 1;
    const Time interval = at.setting.qualified * at.setting.cnp_gap;
    if (m.arm < 0) {
      play_next(m, at);  // there is no interval between two CNPs yet
    } else if (at.now - m.judged_at >= interval && m.sent > 0) {
      judge(q, m, at);
      play_next(m, at);
    }
    cut(q.rp, static_cast<std::size_t>(m.arm), at);
  }

  // ---- NP: as DCQCN's, but a CNP may tell of marks that it does not answer ----
  Time quiet_until(const Receiver& r, const Here<DolceRc>& at) const {
    return count_ ? 0 : gate(r, at);
  }
  bool on_mark(Receiver& r, const Arrived&, CnpFields& cnp, const Here<DolceRc>& at) {
    ++r.marked;
    if (at.now < gate(r, at)) return false;
    const Time gap = at.setting.cnp_gap;
    r.next_cnp = at.now + gap;
    at.nic.next_cnp = at.now + std::max(port_gap_, scope_port_ ? gap : 0);
    cnp.marked = static_cast<std::uint8_t>(std::min(r.marked, kMostCounted));
    r.marked -= cnp.marked;
    return true;
  }

 private:
  struct Watch {
    Here<DolceRc> at;
    void operator()(const ReactionPoint& rp, bool cut, Time when) const {
      at.notes.count(cut ? kCuts : kIncreases);
      trace(rp, cut ? kCut : kIncrease, when, -1, -1);
    }
    void trace(const ReactionPoint& rp, Event what, Time when, int arm, double reward) const {
      if (!at.notes.tracing) return;
      at.notes.trace(at.connection, when, what,
                     {static_cast<double>(rp.rate), static_cast<double>(rp.target),
                      static_cast<double>(arm), reward});
    }
  };

  static Time gate(const Receiver& r, const Here<DolceRc>& at) {
    return std::max(r.next_cnp, at.nic.next_cnp);
  }

  void count_sent(Memory& m, Time now) const {
    if (count_) {
      ++m.sent;
    } else if (now >= m.slot_end) {
      ++m.sent;
      m.slot_end = (now / kSlot + 1) * kSlot;
    }
  }

  // rewards the arm in play (equation 4; a ratio above 1 is 1)
  void judge(const Sender& q, Memory& m, const Here<DolceRc>& at) const {
    const std::int64_t marked = std::min(m.marked, m.sent);
    const double reward = 1.0 - static_cast<double>(marked) / static_cast<double>(m.sent);
    if (auto* learner = std::get_if<DrUcb>(&m.learner)) {
      learner->learn(at.setting.rules, m.arm, reward);
      learner->advance(at.setting.rules);
    } else {
      FixedDrUcb& whole = std::get<FixedDrUcb>(m.learner);
      whole.learn(at.setting.whole, m.arm, static_cast<std::uint8_t>(marked * 255 / m.sent));
      whole.advance(at.setting.whole);
    }
    at.notes.count(kQualified);
    Watch{at}.trace(q.rp, kJudged, at.now, m.arm, reward);
  }
  void play_next(Memory& m, const Here<DolceRc>& at) const {
    const auto* learner = std::get_if<DrUcb>(&m.learner);
    m.arm = learner ? learner->choose(at.setting.rules)
                    : std::get<FixedDrUcb>(m.learner).choose(at.setting.whole);
    m.judged_at = at.now;
    m.sent = m.marked = 0;
    at.notes.count(kArm0 + static_cast<unsigned>(m.arm));
  }

  // the cut of DCQCN's paper, with the alpha of an arm from the first CNP on
  static void cut(ReactionPoint& rp, std::size_t arm, const Here<DolceRc>& at) {
    const double target = at.setting.beta[arm] * static_cast<double>(rp.rate);
    rp.active = true;
    rp.alpha_base = at.setting.alpha[arm] * 1024.0;
    rp.alpha_idle = 0;
    rp.alpha_next = kNever;
    rp.on_cnp(at.setting, RpMode::kPaper, at.now);
    rp.target = std::min(static_cast<Rate>(target), rp.line);
    Watch{at}(rp, true, at.now);
  }

  bool count_;
  bool shared_;
  Time port_gap_;
  bool scope_port_;
  Memory fresh_;
};

}  // namespace dcqcn
