// The lazy reaction point against an eager one that runs every timer tick by tick, over random
// CNPs, packets and changes of setting: the same bits at every step.
#include <algorithm>
#include <cstdio>

#include "model/base/random_stream.hpp"
#include "model/schemes/dcqcn.hpp"
#include "tests/check.hpp"

namespace dcqcn {
namespace {

// G^n as docs/reference/model.md defines it, by repeated multiplication
double decay(double g, std::uint32_t n) {
  if (n >= 65536) return 0.0;
  const double factor = g / 1024.0;
  double step = 1.0, low = 1.0, high = 1.0;
  for (int i = 0; i < 256; ++i) step *= factor;
  for (std::uint32_t i = 0; i < n % 256; ++i) low *= factor;
  for (std::uint32_t i = 0; i < n / 256; ++i) high *= step;
  return high * low;
}

class Eager {
 public:
  Eager(const NicSetting& s, RpMode mode, Rate line) : s_(s), mode_(mode), line_(line) {
    rate = target = line;
  }

  void run(Time now) {
    while (true) {
      const Time next = std::min({increase_at_, alpha_at_, cut_at_});
      if (next > now) return;
      if (next == increase_at_) {
        increase_at_ += s_.time_reset;
        increase(true);
      } else if (next == alpha_at_) {
        alpha_at_ += s_.alpha_period;
        alpha_tick();
      } else {
        cut_at_ += s_.reduce_period;
        if (want_cut_) {
          if (s_.clamp_target || bytes_ > 0 || (times_ > 0 && s_.clamp_target_after_time)) {
            target = rate;
          }
          cut();
          want_cut_ = false;
          increase_at_ = next + s_.time_reset;
        }
      }
    }
  }

  void cnp(Time now) {
    run(now);
    const bool first = !active_;
    if (first) {
      active_ = true;
      base_ = s_.initial_alpha;
      if (s_.first_cnp_rate > 0) rate = s_.first_cnp_rate;
      rate = target = std::min(std::max(std::min(rate, top()), s_.min_rate), line_);
    }
    if (mode_ == RpMode::kPaper) {
      target = rate;
      cut();
      base_ = std::min(alpha() * (s_.g / 1024.0) + (1024.0 - s_.g), 1023.0);
      idle_ = 0;
      alpha_at_ = now + s_.alpha_period;
      increase_at_ = now + s_.time_reset;
    } else {
      if (first) {
        alpha_at_ = now + s_.alpha_period;
        cut_at_ = now + s_.reduce_period;
      } else {
        marked_ = true;
      }
      want_cut_ = true;
    }
  }

  void sent(Time now, Bytes payload) {
    run(now);
    if (increase_at_ == kNever || s_.byte_reset == 0) return;
    for (count_ += payload; count_ >= s_.byte_reset; count_ -= s_.byte_reset) increase(false);
  }

  void change(const NicSetting& next, Time now) {
    run(now - 1);
    if (active_ && s_.g != next.g) {
      base_ = alpha();
      idle_ = 0;
    }
    s_ = next;
    if (!active_) return;
    rate = std::min(std::max(rate, s_.min_rate), top());
    target = std::min(std::max(target, rate), top());
  }

  double alpha() const { return base_ * decay(s_.g, idle_); }

  Rate rate, target;

 private:
  // the highest rate of the limiter; a minimum above the maximum wins
  Rate top() const {
    if (s_.max_rate == 0) return line_;
    return std::min(line_, std::max(s_.max_rate, s_.min_rate));
  }

  void alpha_tick() {
    if (marked_) {
      base_ = std::min(alpha() * (s_.g / 1024.0) + (1024.0 - s_.g), 1023.0);
      idle_ = 0;
      marked_ = false;
    } else {
      ++idle_;
    }
  }

  void cut() {
    const double keep = std::max(1.0 - alpha() / s_.gd, s_.min_dec_fac);
    rate = static_cast<Rate>(static_cast<double>(rate) * keep);
    rate = std::min(std::max(rate, s_.min_rate), line_);
    times_ = bytes_ = 0;
    count_ = 0;
  }

  void increase(bool timer) {
    const std::int64_t other = s_.byte_reset == 0 ? times_ : bytes_;
    const std::int64_t f = s_.threshold;
    if (std::max(times_, other) >= f) {
      const std::int64_t i = std::min(times_, other) - f;
      if (i <= 0) {
        target += s_.ai_rate;
      } else {
        target += mode_ == RpMode::kPaper ? i * s_.hai_rate : s_.hai_rate;
      }
      target = std::min(target, top());
    }
    rate = std::min((rate + target + 1) / 2, top());
    ++(timer ? times_ : bytes_);
  }

  NicSetting s_;
  RpMode mode_;
  Rate line_;
  Time increase_at_ = kNever, alpha_at_ = kNever, cut_at_ = kNever;
  double base_ = 0;
  std::uint32_t idle_ = 0;
  std::int64_t times_ = 0, bytes_ = 0;
  Bytes count_ = 0;
  bool active_ = false, marked_ = false, want_cut_ = false;
};

// log-uniform whole number in [low, high]
std::int64_t draw(RandomStream& r, double low, double high) {
  double x = low;
  const double ratio = high / low, u = r.uniform();
  for (double part = 0.5, root = ratio; part > 1e-4; part /= 2) {  // low * ratio^u by bisection
    double guess = 1;
    while (guess * guess < root) guess *= 1.01;
    root = guess;
    if (static_cast<std::int64_t>(u / part) & 1) x *= root;
  }
  return std::clamp(static_cast<std::int64_t>(x), static_cast<std::int64_t>(low),
                    static_cast<std::int64_t>(high));
}

NicSetting random_setting(RandomStream& r) {
  const auto us = [](std::int64_t t) { return t * kPicosPerMicro; };
  NicSetting s;
  s.clamp_target = r.below(4) == 0;
  s.clamp_target_after_time = r.below(2) == 0;
  s.time_reset = us(draw(r, 1, 500));
  s.byte_reset = r.below(3) == 0 ? 0 : 64 * draw(r, 1, 32767);
  s.threshold = r.below(6);
  s.max_rate = r.below(2) == 0 ? 0 : 1'000'000 * draw(r, 100, 200'000);
  s.ai_rate = 1'000'000 * draw(r, 1, 5000);
  s.hai_rate = 1'000'000 * draw(r, 1, 20000);
  s.gd = static_cast<double>(1u << r.below(16));
  s.min_dec_fac = r.below(101) / 100.0;
  s.min_rate = 1'000'000 * draw(r, 1, 100'000);
  s.first_cnp_rate = r.below(2) == 0 ? 0 : 1'000'000 * draw(r, 1, 150'000);
  s.reduce_period = us(draw(r, 1, 200));
  s.g = r.below(3) == 0 ? r.below(1024) : 1019;
  s.alpha_period = us(draw(r, 1, 300));
  s.initial_alpha = 1 + r.below(1023);
  s.decay = std::make_shared<DecayTable>(s.g / 1024.0);
  return s;
}

void compare(std::uint64_t seed, RpMode mode) {
  RandomStream r(seed, Purpose::kRounds, mode == RpMode::kPaper ? 1 : 0);
  const Rate line = 100'000'000'000;
  NicSetting s = random_setting(r);
  ReactionPoint lazy;
  lazy.start(line);
  Eager eager(s, mode, line);
  Time now = 0;
  for (int step = 0; step < 300; ++step) {
    // bursts of events on whole microseconds (ties with ticks) and long silences
    now += r.below(3) == 0 ? kPicosPerMicro * r.below(20) : r.below(3'000'000);
    if (r.below(40) == 0) now += kPicosPerMicro * draw(r, 1, 20'000);
    const unsigned what = r.below(20);
    bool alpha_known = false;
    if (what == 0) {
      now += 1;  // a change comes first in its picosecond
      const NicSetting next = random_setting(r);
      lazy.change_setting(s, next, now);
      eager.change(next, now);
      s = next;
    } else if (what < 7) {
      lazy.on_cnp(s, mode, now);
      eager.cnp(now);
      alpha_known = true;
    } else {
      const Bytes payload = 1 + r.below(1000);
      lazy.catch_up(s, now);
      lazy.on_sent(s, payload);
      eager.sent(now, payload);
    }
    const bool same = lazy.rate == eager.rate && lazy.target == eager.target &&
                      (!alpha_known || lazy.alpha(s) == eager.alpha());
    if (!CHECK(same)) {
      std::printf(
          "    seed %llu mode %d step %d at %lld: rate %lld, expected %lld; target %lld, "
          "expected %lld; alpha %.17g, expected %.17g\n",
          static_cast<unsigned long long>(seed), static_cast<int>(mode), step,
          static_cast<long long>(now), static_cast<long long>(lazy.rate),
          static_cast<long long>(eager.rate), static_cast<long long>(lazy.target),
          static_cast<long long>(eager.target), lazy.alpha(s), eager.alpha());
      return;
    }
  }
}

}  // namespace
}  // namespace dcqcn

int main() {
  using namespace dcqcn;
  for (double g : {0.0, 1.0, 512.0, 1019.0, 1023.0}) {
    const DecayTable table(g / 1024.0);
    for (std::uint32_t n : {0u, 1u, 2u, 255u, 256u, 257u, 1000u, 65535u, 65536u, 1u << 30}) {
      CHECK(table.power(n) == decay(g, n));
    }
  }
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    compare(seed, RpMode::kNic);
    compare(seed, RpMode::kPaper);
  }
  return check::result("reaction_point_eager");
}
