// The sender of a class with transport = "tcp": NewReno (RFC 5681, 6582) with a retransmission
// timer (RFC 6298), in whole packets. It knows no sequence numbers: the transport says what came.
#pragma once

#include <algorithm>

#include "model/base/units.hpp"

namespace dcqcn {

class TcpSender {
 public:
  // segment: bytes of a full packet; least: the shortest retransmission timer
  void start(Bytes segment, Time least) {
    *this = TcpSender{};
    segment_ = segment;
    window_ = kInitial * segment;
    rto_ = least_ = least;
  }

  // packets that may be in flight, at least one
  std::uint32_t packets() const {
    return static_cast<std::uint32_t>(std::max<Bytes>(window_ / segment_, 1));
  }
  Bytes window() const { return window_; }
  Bytes threshold() const { return threshold_; }
  bool recovering() const { return recovering_; }
  Time rto() const { return rto_ << backoff_; }
  // of the partial ACKs of a recovery the first alone sets the timer anew (RFC 6582, 3.2 step 3):
  // after a burst of losses it runs out, and slow start heals sooner than one hole a round trip
  bool holds_timer() const { return recovering_ && partial_ > 1; }

  // the round trip of a packet that an ACK of something new answers
  void sample(Time rtt) {
    backoff_ = 0;
    if (smoothed_ == 0) {
      smoothed_ = rtt;
      varies_ = rtt / 2;
    } else {
      const Time off = rtt - smoothed_;
      varies_ += ((off < 0 ? -off : off) - varies_) / 4;
      smoothed_ += off / 8;
    }
    rto_ = std::max(least_, smoothed_ + 4 * varies_);
  }
  // `fresh` packets were acknowledged for the first time and `flight` had been on their way;
  // healed: all that was sent when the loss was seen. True: resend what is missing next.
  bool on_ack(std::uint32_t fresh, std::uint32_t flight, bool healed) {
    repeats_ = 0;
    held_ = held_ >= fresh ? held_ - fresh + 1 : 0;  // what filled the hole was not among them
    if (!recovering_) {
      held_ = 0;
      // a window that is not even half used says nothing about the path
      if (window_ < Bytes{2} * flight * segment_) {
        window_ +=
            window_ < threshold_ ? segment_ : std::max<Bytes>(segment_ * segment_ / window_, 1);
      }
      return false;
    }
    if (healed) {
      recovering_ = false;
      held_ = 0;
      const std::uint32_t left = flight > fresh ? flight - fresh : 1;
      window_ = std::min(threshold_, (left + 1) * segment_);
      return false;
    }
    window_ = std::max<Bytes>(window_ - fresh * segment_, 0) + segment_;
    ++partial_;
    return true;
  }
  // an ACK of nothing new; `again` would be a loss of its own, not an echo of the last one.
  // True: the third one, resend what is missing.
  bool on_repeat(std::uint32_t flight, bool again) {
    ++held_;
    if (recovering_) {
      window_ += segment_;
      return false;
    }
    if (++repeats_ != 3 || !again) return false;
    shrink(flight);
    window_ = threshold_ + 3 * segment_;
    recovering_ = true;
    partial_ = 0;
    return true;
  }
  // Of the packets without an ACK those in the receiver's hands are not in the pipe: in a recovery,
  // whose window is inflated by them, the threshold would else hold a flow in slow start up to the
  // next burst of losses, for ever. Nor does it exceed what was found when the recovery began.
  void on_timeout(std::uint32_t flight) {
    if (backoff_ == 0) {  // once for a packet, however often it is sent again
      const Bytes found = recovering_ ? threshold_ : Bytes{1} << 50;
      shrink(flight > held_ ? flight - held_ : 0);
      threshold_ = std::min(threshold_, found);
    }
    window_ = segment_;
    recovering_ = false;
    held_ = 0;
    repeats_ = 0;
    backoff_ = std::min(backoff_ + 1, kMostBackoff);
  }

 private:
  static constexpr Bytes kInitial = 10;  // packets, RFC 6928
  static constexpr int kMostBackoff = 6;

  void shrink(std::uint32_t flight) {
    threshold_ = std::max<Bytes>(flight * segment_ / 2, 2 * segment_);
  }

  Bytes segment_ = 0;
  Bytes window_ = 0;
  Bytes threshold_ = Bytes{1} << 50;
  Time least_ = 0;
  Time rto_ = 0;
  Time smoothed_ = 0;  // round trip; 0: none yet
  Time varies_ = 0;
  std::uint32_t repeats_ = 0;
  std::uint32_t held_ = 0;     // sent, not acknowledged, and told of by an ACK of nothing new
  std::uint32_t partial_ = 0;  // ACKs in this recovery that did not end it
  int backoff_ = 0;
  bool recovering_ = false;
};

}  // namespace dcqcn
