// A scheme that exists to show what a scheme can do: it uses every hook there is. Receivers keep
// a NIC-wide list of marked queue pairs and answer one of them per tick; the CNP says how many
// there are. Data packets carry a number, ACKs bring back how many came and how many were marked.
// A paused NIC does not increase. Small numbers, no meaning.
#pragma once

#include <algorithm>
#include <stdexcept>

#include "model/schemes/scheme_of.hpp"
#include "model/settings/knobs.hpp"

namespace dcqcn {

struct ToySetting {
  Time scan_period = 2 * kPicosPerMicro;
  Rate step = 1'000'000'000;
  static ToySetting from_si(const double* v);
};

inline constexpr auto kToyKnobs = std::to_array<Knob<ToySetting>>({
    {{.name = "toy_scan_period",
      .group = "np",
      .unit = kMicroseconds,
      .initial = 2,
      .legal = {0.1, 1000},
      .tuned = {0.5, 100},
      .step = 1,
      .direction = 1,
      .help = "time between two answers of a NIC, and between two increases",
      .integer = false,
      .log = true,
      .source = "made up"},
     [](ToySetting& s, double v) { s.scan_period = picoseconds(v); }},
    {{.name = "toy_step",
      .group = "rp_increase",
      .unit = kMegabits,
      .initial = 1000,
      .legal = {0, 100'000},
      .tuned = {1, 10'000},
      .step = 100,
      .direction = 1,
      .help = "increase of the rate",
      .source = "made up"},
     [](ToySetting& s, double v) { s.step = whole(v); }},
});
static_assert(sound(kToyKnobs));

inline ToySetting ToySetting::from_si(const double* v) {
  ToySetting s;
  put_all(s, kToyKnobs, v);
  if (s.scan_period < 1) throw std::invalid_argument("toy_scan_period must be above 0");
  return s;
}

class Toy : public SchemeBase {
 public:
  static constexpr const char* kName = "toy";
  static constexpr auto& kKnobs = kToyKnobs;
  enum Counter : unsigned { kAnswers, kCuts, kPauses };
  static constexpr std::array kCounters = {"answers", "cuts", "pauses"};
  enum Event : unsigned { kCut };
  static constexpr std::array kEvents = {"cut"};
  static constexpr std::array kEventValues = {"rate", "listed"};

  using Setting = ToySetting;
  struct Sender {
    Rate line = 0;
    Rate rate = 0;
    Time next_increase = 0;
    std::uint32_t sent = 0;
    std::uint32_t messages = 0;
    std::uint32_t share = 1024;  // of packets that came unmarked, by the last ACK
    bool paused = false;
  };
  struct Receiver {
    std::uint32_t packets = 0;
    std::uint32_t marked = 0;
    std::uint32_t largest = 0;
    bool listed = false;
  };
  struct Nic {
    std::vector<std::uint32_t> congested;
    Time scan_at = kNever;
    void visit(Archive& a) { a.all<Nic>(congested, scan_at); }
  };
  struct DataFields {
    std::uint32_t number = 0;
    std::uint16_t messages = 0;
    std::uint8_t share = 0;
  };
  struct AckFields {
    std::uint32_t packets = 0;
    std::uint32_t marked = 0;
    std::uint32_t largest = 0;
    std::uint8_t listed = 0;
  };
  struct CnpFields {
    std::uint32_t listed = 1;
  };

  Toy(const SchemeSpec& spec, const Transport&)
      : slow_(spec.choice("pace", {"fast", "slow"}) == "slow") {
    spec.allow({"pace"});
  }

  // ---- sender ----
  void start(Sender& q, const Here<Toy>& at) {
    q.line = at.connection.line;
    q.rate = q.line / (slow_ ? 4 : 1);
    q.next_increase = at.now + at.setting.scan_period;
  }
  Pace pace(const Sender& q, const Setting&) const { return {q.rate, q.rate}; }
  Bytes window(const Sender& q, const Setting&) const { return q.rate / 8 / 20'000; }  // 50 us
  void catch_up(Sender& q, Time until, const Here<Toy>& at) const {
    while (q.next_increase <= until) {
      q.next_increase += at.setting.scan_period;
      if (!q.paused) q.rate = std::min(q.rate + at.setting.step, q.line);
    }
  }
  void change_setting(Sender& q, const Setting& before, const Here<Toy>& at) {
    catch_up(q, at.now - 1, {at.connection, before, at.nic, at.notes, at.now});
  }
  void on_send(Sender& q, const Sent& sent, DataFields& fields, const Here<Toy>& at) {
    catch_up(q, at.now, at);
    q.sent += sent.retransmit ? 0 : 1;
    fields = {q.sent, static_cast<std::uint16_t>(q.messages),
              static_cast<std::uint8_t>(q.share / 8)};
  }
  void on_cnp(Sender& q, const CnpFields& cnp, const Here<Toy>& at) {
    catch_up(q, at.now, at);
    q.rate = std::max(q.rate - q.rate / (8 + cnp.listed), q.line / 1000);
    at.notes.count(kCuts);
    at.notes.trace(at.connection, at.now, kCut,
                   {static_cast<double>(q.rate), static_cast<double>(cnp.listed)});
  }
  void on_ack(Sender& q, const Acked& acked, const AckFields& ack, const Here<Toy>& at) {
    catch_up(q, at.now, at);
    if (ack.packets > 0) q.share = 1024 - 1024 * ack.marked / ack.packets;
    if (acked.rtt > 0 && ack.listed > 0) q.rate = std::max(q.rate - acked.rtt, q.line / 1000);
  }
  void on_message(Sender& q, const MessageDone& done, const Here<Toy>& at) {
    ++q.messages;
    if (at.now - done.start < 2 * done.ideal) q.rate = std::min(q.rate + at.setting.step, q.line);
  }

  // ---- receiver ----
  void on_data(Receiver& r, const Arrived& arrived, const DataFields& data, const Here<Toy>& at) {
    ++r.packets;
    r.marked += arrived.marked;
    r.largest = std::max(r.largest, data.number + data.messages + data.share);
    if (!arrived.marked || r.listed || arrived.done) return;
    r.listed = true;
    if (at.nic.congested.empty()) at.nic.scan_at = at.now + at.setting.scan_period;
    at.nic.congested.push_back(at.connection.ref);
  }
  // the first mark is answered at once, the others by the scan
  bool on_mark(Receiver& r, const Arrived&, CnpFields& cnp, const Here<Toy>& at) {
    cnp.listed = static_cast<std::uint32_t>(at.nic.congested.size());
    return r.marked == 1;
  }
  void on_reply(Receiver& r, AckFields& ack, const Here<Toy>&) {
    ack = {r.packets, r.marked, r.largest, r.listed};
  }

  // ---- NIC ----
  Time next_tick(const Nic& nic) const { return nic.scan_at; }
  void tick(Ends<Toy>& ends) {
    Nic& nic = ends.nic();
    const std::uint32_t ref = nic.congested.front();
    nic.congested.erase(nic.congested.begin());
    if (Receiver* r = ends.receiver(ref)) {
      r->listed = false;
      ends.send_cnp(ref, {static_cast<std::uint32_t>(nic.congested.size()) + 1});
      ends.notes().count(kAnswers);
    }
    nic.scan_at = nic.congested.empty() ? kNever : ends.now() + ends.setting().scan_period;
  }
  void on_pause(unsigned priority, bool paused, Ends<Toy>& ends) {
    ends.notes().count(kPauses);
    ends.for_each_sender([&](Sender& q, const Here<Toy>& at) {
      if (at.connection.priority != priority) return;
      catch_up(q, at.now, at);
      q.paused = paused;
      if (!paused) q.rate = std::max(q.rate / 2, q.line / 1000);
    });
  }

 private:
  bool slow_;
};

}  // namespace dcqcn
