// DCQCN+ (Gao et al., ICNP 2018): DCQCN whose timers and steps follow the number of congested queue
// pairs. The receiving NIC shares its CNPs among those in turn (congested_list.hpp) and writes the
// period tau of a turn on each; the sender waits for so long before it increases, and its steps are
// shares of its rate. Equation numbers are the paper's; docs/reference/model.md tells what we chose
// where it is silent. No clock of its own: timers are lazy, as those of DCQCN.
#pragma once

#include <algorithm>
#include <array>

#include "model/schemes/congested_list.hpp"
#include "model/schemes/dcqcn_plus_knobs.hpp"
#include "model/schemes/scheme_of.hpp"

namespace dcqcn {

// who looks on while the rate increases: here nobody
struct NobodyLooks {
  void operator()(const auto&, Time, bool /*skipped*/) const {}
};

struct PlusReactionPoint {
  Time timer_next = kNever;  // the next increase; kNever: no CNP yet, or at full rate again
  Rate rate = 0;             // R_C
  Rate target = 0;           // R_T
  Rate line = 0;             // R_l
  Time alpha_next = kNever;
  Time timer = 0;        // K
  Time alpha_timer = 0;  // K_alpha
  double alpha = 0.0;
  std::uint32_t stage = 0;  // S
  bool active = false;      // a CNP has come

  void start(Rate line_rate) {
    *this = PlusReactionPoint{};
    line = rate = target = line_rate;
  }

  // run every increase at or before `until`; the pause state has not changed since the last call
  template <class Watch = NobodyLooks>
  void catch_up(const PlusSetting& s, Time until, bool paused, Watch watch = {}) {
    while (timer_next <= until) {
      const Time when = timer_next;
      timer_next += timer;
      if (!paused) {
        decay(s, when - 1);
        increase(s);
      }
      watch(*this, when, paused);
    }
  }

  // a CNP that says tau (0: it says nothing); timers up to now have run
  void on_cnp(const PlusSetting& s, Time tau, Time now) {
    if (!active) {
      active = true;
      alpha = s.initial_alpha;
    }
    decay(s, now);
    target = rate;                                                           // (12)
    const double kept = 1.0 - alpha * s.cut;                                 // (13)
    alpha = (1.0 - s.g) * alpha + s.g;                                       // (14)
    rate = bounded(s, static_cast<Rate>(static_cast<double>(rate) * kept));  // (15)
    stage = 0;
    set_timers(s, tau);
    timer_next = now + timer;
    alpha_next = now + alpha_timer;
  }

  // a setting changes at `now`; timers before it ran with the old one, armed ones stay armed
  void change_setting(const PlusSetting& before, const PlusSetting& next, Time now) {
    if (!active) return;
    decay(before, now - 1);
    rate = bounded(next, rate);
    target = std::max(target, rate);
  }

 private:
  Rate bounded(const PlusSetting& s, Rate wanted) const {
    const Rate least = static_cast<Rate>(static_cast<double>(line) * s.min_share);
    return std::min(std::max({wanted, least, Rate{1}}), line);
  }

  // (16), (17): both timers leave time for a CNP of this queue pair and for a packet
  void set_timers(const PlusSetting& s, Time tau) {
    timer = s.timer;
    alpha_timer = s.alpha_timer;
    if (tau <= s.adapt_above) return;
    const double wait = static_cast<double>(std::max(tau, pacing_gap(s.packet, rate)));
    timer = std::max<Time>(1, static_cast<Time>(wait * s.lambda));
    alpha_timer = std::max<Time>(1, static_cast<Time>(wait * s.lambda_alpha));
  }

  // (23) at every tick at or before `until`
  void decay(const PlusSetting& s, Time until) {
    while (alpha_next <= until) {
      if (alpha < kNoAlpha) {  // nothing is left to decay: jump
        alpha_next += (until - alpha_next) / alpha_timer * alpha_timer + alpha_timer;
        return;
      }
      alpha = (1.0 - s.g) * alpha;
      if (alpha < kNoAlpha) alpha = 0.0;
      alpha_next += alpha_timer;
    }
  }

  void increase(const PlusSetting& s) {
    ++stage;
    const double now = static_cast<double>(rate), full = static_cast<double>(line);
    double step = 0.0;              // fast recovery (18)
    if (stage > 4 * s.threshold) {  // (21)
      step = std::min(s.hai_share * now, (stage - 4 * s.threshold) * s.hai_line * full);
    } else if (stage > s.threshold) {  // (19)
      step = (alpha > s.alpha_large ? 2.0 : 1.0) * std::min(s.ai_share * now, s.ai_line * full);
    }
    target = std::min(target + static_cast<Rate>(step), line);
    rate = std::min((rate + target + 1) / 2, line);  // (18), (20), (22)
    if (rate >= line) timer_next = kNever;           // further ticks would change nothing
  }

  static constexpr double kNoAlpha = 1e-12;
};

class DcqcnPlus : public SchemeBase {
 public:
  static constexpr const char* kName = "dcqcn-plus";
  static constexpr auto& kKnobs = kPlusKnobs;
  enum Counter : std::uint8_t { kCuts, kIncreases, kHeldIncreases, kListed };
  static constexpr std::array kCounters = {"cuts", "increases", "held_increases", "listed"};
  enum Event : std::uint8_t { kCut, kIncrease, kCnp };
  static constexpr std::array kEvents = {"cut", "increase", "cnp"};
  static constexpr std::array kEventValues = {"rate", "target", "alpha", "stage", "timer_ps"};

  using Setting = PlusSetting;
  using Listed = CongestedList::Record;
  using Sender = PlusReactionPoint;
  struct Receiver {
    std::uint32_t place = CongestedList::kNowhere;
  };
  struct Nic {
    CongestedList congested;
    std::uint8_t paused = 0;  // a bit for each priority of its port
    void visit(Archive& a) { a.all<Nic>(congested, paused); }
    bool holds(unsigned priority) const { return (paused >> priority & 1u) != 0; }
  };
  struct CnpFields {
    Time tau = 0;  // period of the CNPs of this queue pair; 0: not said
  };
  using Here = dcqcn::Here<DcqcnPlus>;

  DcqcnPlus(const SchemeSpec& spec, const Transport&) { spec.allow({}); }

  // tau in nanoseconds; how the paper writes it into the reserved field is not said
  CnpBits bits_of(const CnpFields& cnp) const {
    return {0, static_cast<std::uint32_t>(std::min<Time>(cnp.tau / 1000, ~0u))};
  }

  // ---- RP ----
  void start(Sender& q, const Here& at) { q.start(at.connection.line); }
  Pace pace(const Sender& q, const Setting&) const { return {q.rate, q.rate}; }
  void catch_up(Sender& q, Time until, const Here& at) const {
    q.catch_up(at.setting, until, at.nic.holds(at.connection.priority));
  }
  void change_setting(Sender& q, const Setting& before, const Here& at) {
    run_timers(q, before, at.now - 1, at);
    q.change_setting(before, at.setting, at.now);
  }
  void on_send(Sender& q, const Sent&, NoFields&, const Here& at) {
    if (q.timer_next <= at.now) run_timers(q, at.setting, at.now, at);
  }
  bool resting(const Sender& q) const { return !q.active; }
  void on_cnp(Sender& q, const CnpFields& cnp, const Here& at) {
    run_timers(q, at.setting, at.now, at);
    q.on_cnp(at.setting, cnp.tau, at.now);
    at.notes.count(kCuts);
    Watch{at}.trace(q, kCnp, at.now);
    Watch{at}.trace(q, kCut, at.now);
  }
  void on_pause(unsigned priority, bool paused, Ends<DcqcnPlus>& ends) {
    // timers of this instant come after the PFC frame
    ends.for_each_sender([&](Sender& q, const Here& at) {
      if (at.connection.priority == priority) run_timers(q, at.setting, at.now - 1, at);
    });
    const auto bit = static_cast<std::uint8_t>(1u << priority);
    std::uint8_t& state = ends.nic().paused;
    state = static_cast<std::uint8_t>(paused ? state | bit : state & ~bit);
  }

  // ---- NP ----
  bool on_mark(Receiver& r, const Arrived& arrived, CnpFields&, const Here& at) {
    if (arrived.done) return false;  // nobody is left to be told
    if (r.place == CongestedList::kNowhere) at.notes.count(kListed);
    r.place = at.nic.congested.mark(r.place, at.connection.ref, at.setting.cnp_interval,
                                    at.setting.list_time, at.now);
    return false;
  }
  void on_complete(Receiver& r, Ends<DcqcnPlus>& ends) {
    if (r.place == CongestedList::kNowhere) return;
    CongestedList& list = ends.nic().congested;
    if (list.drop(r.place, ends.now())) follow(list, r.place, ends);
    r.place = CongestedList::kNowhere;
  }
  Time next_tick(const Nic& nic) const { return nic.congested.due(); }
  void tick(Ends<DcqcnPlus>& ends) {
    CongestedList& list = ends.nic().congested;
    const std::uint32_t place = list.look(ends.setting().cnp_interval);
    const std::uint32_t ref = list.at(place).ref;
    if (!list.at(place).marked) {
      ends.receiver(ref)->place = CongestedList::kNowhere;
      if (list.remove(place)) follow(list, place, ends);
    } else {
      list.notified(place, ends.now() + ends.setting().min_cnp_gap);
      const Time tau = static_cast<Time>(list.size()) * ends.setting().cnp_interval;  // (11)
      ends.send_cnp(ref, {tau});
    }
    list.plan();
  }

 private:
  struct Watch {
    Here at;
    void operator()(const Sender& q, Time when, bool held) const {
      at.notes.count(held ? kHeldIncreases : kIncreases);
      if (!held) trace(q, kIncrease, when);
    }
    void trace(const Sender& q, Event what, Time when) const {
      if (!at.notes.tracing) return;
      at.notes.trace(at.connection, when, what,
                     {static_cast<double>(q.rate), static_cast<double>(q.target), q.alpha,
                      static_cast<double>(q.stage), static_cast<double>(q.timer)});
    }
  };
  // another record has moved to this place
  static void follow(const CongestedList& list, std::uint32_t place, Ends<DcqcnPlus>& ends) {
    ends.receiver(list.at(place).ref)->place = place;
  }
  static void run_timers(Sender& q, const Setting& s, Time until, const Here& at) {
    q.catch_up(s, until, at.nic.holds(at.connection.priority), Watch{at});
  }
};

}  // namespace dcqcn
