// The notification point of DCQCN+: the list of congested queue pairs of a NIC, of which one record
// is looked at per interval (delta), in turn. A record whose queue pair was marked, and whose last
// CNP is old enough, makes a CNP; one that was not marked for long leaves the list.
//
// Most looks change nothing, so none is an event: the list knows when the next one that does is due
// (`due`), and counts the others by the clock. What comes out is what looking at every record in
// its turn gives; tests hold both against each other.
#pragma once

#include <algorithm>
#include <vector>

#include "model/base/archive.hpp"
#include "model/base/units.hpp"

namespace dcqcn {

class CongestedList {
 public:
  static constexpr std::uint32_t kNowhere = ~0u;

  struct Record {
    std::uint32_t ref = 0;  // queue pair
    bool marked = false;    // a mark has come since its last CNP
    Time cnp_from = 0;      // no CNP before
    Time keep_until = 0;    // leaves at the first look from then on without a mark
  };

  std::size_t size() const { return records_.size(); }
  Time due() const { return due_; }
  const Record& at(std::uint32_t place) const { return records_[place]; }

  // a packet of this queue pair came marked; returns the place of its record
  std::uint32_t mark(std::uint32_t place, std::uint32_t ref, Time interval, Time keep, Time now) {
    if (place == kNowhere) return add(ref, interval, now + keep, now);
    Record& record = records_[place];
    record.keep_until = now + keep;
    if (record.marked) return place;
    record.marked = true;
    pass(now);
    if (interval != interval_) {
      interval_ = interval;
      plan();
    } else if (due_at_ == place) {
      plan();
    } else if (const Time look = next_look(place); look < due_) {
      due_ = look;
      due_at_ = place;
    }
    return place;
  }

  // the look that is due: which record. It always changes something: a marked record is told, its
  // gap being over (notified), and one without a mark leaves (remove). plan() has to follow
  std::uint32_t look(Time interval) {
    last_look_ = due_;
    cursor_ = due_at_ + 1 < records_.size() ? due_at_ + 1 : 0;
    interval_ = interval;
    return due_at_;
  }
  void notified(std::uint32_t place, Time next) {
    records_[place].marked = false;
    records_[place].cnp_from = next;
  }
  // after its look: the last record takes its place and is looked at next; true if there is one
  bool remove(std::uint32_t place) {
    const bool moved = take_out(place);
    cursor_ = moved ? place : 0;
    return moved;
  }
  // at any time: the last record takes its place; true if there is one
  bool drop(std::uint32_t place, Time now) {
    pass(now);
    const bool moved = take_out(place);
    if (cursor_ >= records_.size()) cursor_ = 0;
    plan();
    return moved;
  }

  // when is the next look that does something?
  void plan() {
    due_ = kNever;
    due_at_ = kNowhere;
    const std::uint32_t n = static_cast<std::uint32_t>(records_.size());
    Time look = last_look_;
    std::uint32_t place = cursor_;
    for (std::uint32_t i = 0; i < n; ++i) {
      look += interval_;
      if (look >= due_) break;  // nobody after it has an earlier turn
      if (wish(place) < due_) {
        const Time mine = turn_from(look, wish(place));
        if (mine < due_) {
          due_ = mine;
          due_at_ = place;
        }
      }
      if (++place == n) place = 0;
    }
  }

  void visit(Archive& a) {
    a.all<CongestedList>(records_, cursor_, last_look_, interval_, due_, due_at_);
  }

 private:
  bool take_out(std::uint32_t place) {
    records_[place] = records_.back();
    records_.pop_back();
    return place < records_.size();
  }
  Time wish(std::uint32_t place) const {
    const Record& r = records_[place];
    return r.marked ? r.cnp_from : r.keep_until;
  }
  // a record is looked at at `look` and once a round: the first time at or after `wish`
  Time turn_from(Time look, Time wish) const {
    if (look >= wish) return look;
    const Time round = interval_ * static_cast<Time>(records_.size());
    return look + (wish - look + round - 1) / round * round;
  }
  Time next_look(std::uint32_t place) const {
    const std::uint32_t n = static_cast<std::uint32_t>(records_.size());
    const std::uint32_t ahead = place >= cursor_ ? place - cursor_ : place + n - cursor_;
    return turn_from(last_look_ + interval_ * (ahead + 1), wish(place));
  }
  // the looks up to now, but not the one that is due: it is its own event
  void pass(Time now) {
    const Time until = std::min(now, due_ - 1);
    if (until - last_look_ < interval_) return;
    const Time looks = (until - last_look_) / interval_;
    last_look_ += looks * interval_;
    const std::uint64_t at = cursor_ + static_cast<std::uint64_t>(looks);
    cursor_ = static_cast<std::uint32_t>(at % records_.size());
  }
  std::uint32_t add(std::uint32_t ref, Time interval, Time keep_until, Time now) {
    if (records_.empty()) {
      last_look_ = now;
      cursor_ = 0;
    } else {
      pass(now);
    }
    interval_ = interval;
    records_.push_back({ref, true, 0, keep_until});
    // a turn at the end is that of the new record: the round is one longer
    plan();
    return static_cast<std::uint32_t>(records_.size() - 1);
  }

  std::vector<Record> records_;
  std::uint32_t cursor_ = 0;  // looked at next, an interval after
  Time last_look_ = 0;
  Time interval_ = 1;
  Time due_ = kNever;
  std::uint32_t due_at_ = kNowhere;
};

}  // namespace dcqcn
