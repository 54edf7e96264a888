// DCQCN. Its reaction point (RP) is the rate of one queue pair. No clock of its own: callers bring
// the time, and the timers are lazy, caught up tick by tick when the rate is needed. Its
// notification point (NP) answers marks with CNPs, a gap apart.
//
// "nic" mode is the variant of NVIDIA NICs: free-running alpha and decrease tickers that start at
// the first CNP; a cut happens at a decrease tick that follows a CNP. "paper" mode is DCQCN as
// published (Zhu et al., SIGCOMM 2015): the CNP itself cuts, alpha is updated after the cut.
// Order of ticks at one instant: increase, alpha, decrease. docs/reference/model.md tells the
// rules.
#pragma once

#include <algorithm>

#include "model/base/units.hpp"
#include "model/schemes/dcqcn_knobs.hpp"
#include "model/schemes/scheme_of.hpp"
#include "model/settings/settings.hpp"
#include "model/text/scenario.hpp"

namespace dcqcn {

enum class RpMode : std::uint8_t { kNic, kPaper };

// who looks on while a reaction point cuts and increases: here nobody
struct Unwatched {
  void operator()(const auto&, bool /*cut*/, Time) const {}
};

struct ReactionPoint {
  Time timer_next = kNever;  // earliest tick that can change the rate
  Rate rate = 0;             // R_C
  Rate target = 0;           // R_T
  Rate line = 0;
  Time increase_next = kNever;
  Time cut_next = kNever;        // next decrease tick of the grid
  Time alpha_next = kNever;      // next alpha tick
  double alpha_base = 0.0;       // alpha, of 1024, after the last tick that had a CNP
  std::uint32_t alpha_idle = 0;  // ticks without a CNP since then
  std::uint32_t time_stage = 0;
  std::uint32_t byte_stage = 0;
  Bytes byte_count = 0;
  bool active = false;  // a CNP has come
  bool cnp_for_alpha = false;
  bool cnp_for_cut = false;
  bool paper = false;

  void start(Rate line_rate) {
    *this = ReactionPoint{};
    line = rate = target = line_rate;
  }

  // the rate that paces packets: a limiter that has reached rp_max_rate is released
  Rate pacing_rate(const NicSetting& s) const {
    return s.max_rate > 0 && rate >= s.max_rate ? line : rate;
  }

  double alpha(const NicSetting& s) const { return alpha_base * s.decay->power(alpha_idle); }
  // with the ticks up to `when`, which the next cut or CNP will run
  double alpha_at(const NicSetting& s, Time when) const {
    ReactionPoint later = *this;
    later.alpha_catch_up(s, when);
    return later.alpha(s);
  }

  // run every tick at or before `now`; mostly there is none, and that is told without a call
  template <class Watch = Unwatched>
  [[gnu::always_inline]] void catch_up(const NicSetting& s, Time now, const Watch& watch = {}) {
    if (timer_next <= now) run_ticks(s, now, watch);
  }

  // count payload that starts on the wire at `now` (ticks already caught up)
  template <class Watch = Unwatched>
  void on_sent(const NicSetting& s, Bytes payload, Time now = 0, const Watch& watch = {}) {
    if (increase_next == kNever || s.byte_reset == 0) return;
    byte_count += payload;
    while (byte_count >= s.byte_reset) {
      byte_count -= s.byte_reset;
      increase(s, /*by_timer=*/false);
      watch(*this, false, now);
    }
  }

  template <class Watch = Unwatched>
  void on_cnp(const NicSetting& s, RpMode mode, Time now, const Watch& watch = {}) {
    catch_up(s, now, watch);
    if (!active) {
      first_cnp(s, mode, now);
    } else if (mode == RpMode::kPaper) {
      cut_paper(s, now);
    } else {
      alpha_catch_up(s, now);
      cnp_for_alpha = true;
      if (!cnp_for_cut) {
        cnp_for_cut = true;
        if (cut_next <= now) {
          cut_next += (now - cut_next) / s.reduce_period * s.reduce_period + s.reduce_period;
        }
      }
    }
    rearm();
  }

  // a setting changes at `now`: ticks before it ran with the old one, armed timers stay armed
  template <class Watch = Unwatched>
  void change_setting(const NicSetting& old_setting, const NicSetting& new_setting, Time now,
                      const Watch& watch = {}) {
    catch_up(old_setting, now - 1, watch);
    if (active) {
      alpha_catch_up(old_setting, now - 1);
      if (old_setting.g != new_setting.g) {
        alpha_base = alpha(old_setting);
        alpha_idle = 0;
      }
      if (!cnp_for_cut && cut_next < now) {
        const Time period = old_setting.reduce_period;
        cut_next += ((now - 1 - cut_next) / period + 1) * period;
      }
      rate = std::min(std::max(rate, new_setting.min_rate), cap(new_setting));
      target = std::min(std::max(target, rate), cap(new_setting));
    }
  }

 private:
  template <class Watch>
  void run_ticks(const NicSetting& s, Time now, const Watch& watch) {
    while (timer_next <= now) {
      if (increase_next <= timer_next) {
        if (skip_idle_increases(s, now)) continue;
        const Time when = increase_next;
        increase_next += s.time_reset;
        increase(s, /*by_timer=*/true);
        watch(*this, false, when);
      } else {
        const Time when = cut_next;
        cut(s, when);
        watch(*this, true, when);
      }
      rearm();
    }
  }

  // the highest rate of the limiter; a minimum above the maximum wins
  Rate cap(const NicSetting& s) const {
    return s.max_rate > 0 ? std::min(std::max(s.max_rate, s.min_rate), line) : line;
  }

  void rearm() { timer_next = std::min(increase_next, cnp_for_cut ? cut_next : kNever); }

  void first_cnp(const NicSetting& s, RpMode mode, Time now) {
    active = true;
    alpha_base = s.initial_alpha;
    rate = std::min(s.first_cnp_rate > 0 ? s.first_cnp_rate : rate, cap(s));
    rate = target = std::min(std::max(rate, s.min_rate), line);
    alpha_next = now + s.alpha_period;
    if (mode == RpMode::kPaper) {
      cut_paper(s, now);
    } else {
      cut_next = now + s.reduce_period;
      cnp_for_cut = true;
    }
  }

  // alpha := G/1024 alpha (+ 1024 - G if a CNP came in the period), at every tick <= now
  void alpha_catch_up(const NicSetting& s, Time now) {
    if (alpha_next > now) return;
    std::int64_t ticks = (now - alpha_next) / s.alpha_period + 1;
    alpha_next += ticks * s.alpha_period;
    if (cnp_for_alpha) {
      alpha_base = std::min(alpha(s) * (s.g / 1024.0) + (1024.0 - s.g), 1023.0);
      alpha_idle = 0;
      cnp_for_alpha = false;
      --ticks;
    }
    alpha_idle = static_cast<std::uint32_t>(std::min<std::int64_t>(alpha_idle + ticks, 1 << 30));
  }

  void reduce(const NicSetting& s) {
    const double factor = std::max(1.0 - alpha(s) / s.gd, s.min_dec_fac);
    const Rate reduced = static_cast<Rate>(static_cast<double>(rate) * factor);
    rate = std::min(std::max(reduced, s.min_rate), line);
    time_stage = byte_stage = 0;
    byte_count = 0;
  }

  void cut(const NicSetting& s, Time now) {
    alpha_catch_up(s, now);
    if (s.clamp_target || byte_stage != 0 || (s.clamp_target_after_time && time_stage != 0)) {
      target = rate;
    }
    reduce(s);
    cnp_for_cut = false;
    cut_next = now + s.reduce_period;
    increase_next = now + s.time_reset;
  }

  void cut_paper(const NicSetting& s, Time now) {
    alpha_catch_up(s, now);
    target = rate;
    reduce(s);
    alpha_base = std::min(alpha(s) * (s.g / 1024.0) + (1024.0 - s.g), 1023.0);
    alpha_idle = 0;
    alpha_next = now + s.alpha_period;
    increase_next = now + s.time_reset;
    paper = true;
  }

  void increase(const NicSetting& s, bool by_timer) {
    const std::uint32_t bytes = s.byte_reset == 0 ? time_stage : byte_stage;
    const std::uint32_t most = std::max(time_stage, bytes);
    const std::uint32_t least = std::min(time_stage, bytes);
    const Rate top = cap(s);
    if (most >= s.threshold) {
      if (least <= s.threshold) {
        target += s.ai_rate;
      } else {
        target += paper ? s.hai_rate * static_cast<Rate>(least - s.threshold) : s.hai_rate;
      }
      target = std::min(target, top);
    }
    rate = std::min((rate + target + 1) / 2, top);
    ++(by_timer ? time_stage : byte_stage);  // so F events of a counter are fast recovery
  }

  // at full rate and beyond fast recovery further ticks only count stages: jump over them
  bool skip_idle_increases(const NicSetting& s, Time now) {
    if (rate < cap(s) || target < cap(s)) return false;
    const Time until = std::min(now, cnp_for_cut ? cut_next : kNever);
    const std::int64_t ticks = (until - increase_next) / s.time_reset + 1;
    increase_next += ticks * s.time_reset;
    time_stage = static_cast<std::uint32_t>(std::min<std::int64_t>(time_stage + ticks, 1 << 20));
    rearm();
    return true;
  }
};

class Dcqcn : public SchemeBase {
 public:
  static constexpr const char* kName = "dcqcn";
  static constexpr auto& kKnobs = kDcqcnKnobs;
  enum Counter : std::uint8_t { kCuts, kIncreases };
  static constexpr std::array kCounters = {"cuts", "increases"};
  enum Event : std::uint8_t { kCut, kIncrease, kCnp };
  static constexpr std::array kEvents = {"cut", "increase", "cnp"};
  static constexpr std::array kEventValues = {"rate", "target", "alpha", "stage"};

  using Setting = NicSetting;
  using Sender = ReactionPoint;
  struct Receiver {
    Time next_cnp = 0;
  };
  struct Nic {
    Time next_cnp = 0;
  };

  Dcqcn(const SchemeSpec& spec, const Transport& transport)
      : mode_(spec.choice("mode", {"nic", "paper"}) == "paper" ? RpMode::kPaper : RpMode::kNic),
        port_gap_(transport.cnp_port_gap),
        scope_port_(transport.cnp_scope_port) {
    spec.allow({"mode"});
  }

  // ---- RP ----
  void start(ReactionPoint& rp, const Here<Dcqcn>& at) { rp.start(at.connection.line); }
  Pace pace(const ReactionPoint& rp, const NicSetting& s) const {
    return {rp.rate, rp.pacing_rate(s)};
  }
  void catch_up(ReactionPoint& rp, Time until, const Here<Dcqcn>& at) const {
    rp.catch_up(at.setting, until);
  }
  void change_setting(ReactionPoint& rp, const NicSetting& before, const Here<Dcqcn>& at) {
    rp.change_setting(before, at.setting, at.now, Watch{at, before});
  }
  void on_send(ReactionPoint& rp, const Sent& sent, NoFields&, const Here<Dcqcn>& at) {
    const Watch watch{at, at.setting};
    rp.catch_up(at.setting, at.now, watch);
    rp.on_sent(at.setting, sent.payload, at.now, watch);
  }
  bool resting(const ReactionPoint& rp) const { return !rp.active; }
  void on_cnp(ReactionPoint& rp, NoFields, const Here<Dcqcn>& at) {
    const Watch watch{at, at.setting};
    rp.on_cnp(at.setting, mode_, at.now, watch);
    watch.trace(rp, kCnp, at.now);
    if (mode_ == RpMode::kPaper) watch(rp, true, at.now);
  }

  // ---- NP: the first mark after the gaps of the queue pair and of the NIC sends a CNP at once
  // ----
  Time quiet_until(const Receiver& r, const Here<Dcqcn>& at) const {
    return std::max(r.next_cnp, at.nic.next_cnp);
  }
  bool on_mark(Receiver& r, const Arrived&, NoFields&, const Here<Dcqcn>& at) {
    if (at.now < quiet_until(r, at)) return false;
    const Time gap = at.setting.cnp_gap;
    r.next_cnp = at.now + gap;
    // without a gap of the NIC its queue pairs may be asked in any order
    if (const Time port_gap = std::max(port_gap_, scope_port_ ? gap : 0); port_gap > 0) {
      at.nic.next_cnp = at.now + port_gap;
    }
    return true;
  }

 private:
  struct Watch {
    const Here<Dcqcn>& at;
    const NicSetting& setting;  // that the ticks run with
    void operator()(const ReactionPoint& rp, bool cut, Time when) const {
      at.notes.count(cut ? kCuts : kIncreases);
      trace(rp, cut ? kCut : kIncrease, when);
    }
    void trace(const ReactionPoint& rp, Event what, Time when) const {
      if (!at.notes.tracing) return;
      const double stage = std::max(rp.time_stage, rp.byte_stage);
      at.notes.trace(at.connection, when, what,
                     {static_cast<double>(rp.rate), static_cast<double>(rp.target),
                      rp.alpha_at(setting, when), stage});
    }
  };

  RpMode mode_;
  Time port_gap_;
  bool scope_port_;
};

}  // namespace dcqcn
