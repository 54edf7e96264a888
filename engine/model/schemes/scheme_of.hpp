// A Scheme made of a plain struct of hooks. `S` names its states and whatever it wants to hear of;
// a hook that it does not have is not called. CONTRIBUTING tells how to write one.
//
//   kName, kKnobs (rows), kCounters, kEvents, kEventValues (names)
//   Setting (with from_si), Sender, Receiver, Nic      states; a fresh one is value-initialised
//   DataFields, AckFields, CnpFields                   what rides on packets; NoFields: nothing
//   S(const SchemeSpec&, const Transport&)             reads and checks its options
//   void start(Sender&, here)                          a queue pair begins
//   Pace pace(const Sender&, const Setting&) const
// and any of
//   Bytes window(const Sender&, const Setting&) const   bytes in flight, instead of the scenario's
//   void catch_up(Sender&, Time until, here) const      run lazy timers up to an instant
//   void change_setting(Sender&, const Setting& before, here)
//   void on_send(Sender&, const Sent&, DataFields& out, here)
//   Time next_send(const Sender&, Time paced) const     after a send: when the next may start
//   bool resting(const Sender&) const      on_send does nothing until something else is heard
//   void on_cnp(Sender&, const CnpFields&, here)
//   void on_ack(Sender&, const Acked&, const AckFields&, here)
//   void on_message(Sender&, const MessageDone&, here)
//   void on_data(Receiver&, const Arrived&, const DataFields&, here)
//   bool on_mark(Receiver&, const Arrived&, CnpFields& out, here)     true: send a CNP
//   Time quiet_until(const Receiver&, here) const       marks before that change nothing
//   void on_reply(Receiver&, AckFields& out, here)                    an ACK or NACK leaves
//   void on_complete(Receiver&, ends)      nothing of this queue pair is missing any more
//   void on_pause(unsigned priority, bool paused, ends)
//   Time next_tick(const Nic&) const; void tick(ends)                 NIC-wide timer
// What comes later than `now` is all that a tick may be armed for, and a send cannot arm one.
#pragma once

#include <algorithm>

#include "model/flows/queue_pair.hpp"
#include "model/flows/transport.hpp"
#include "model/schemes/here.hpp"
#include "model/schemes/lane.hpp"
#include "model/schemes/scheme.hpp"

namespace dcqcn {

// a scheme inherits this and replaces what it needs
struct SchemeBase {
  struct Receiver {};
  struct Nic {};
  using DataFields = NoFields;
  using AckFields = NoFields;
  using CnpFields = NoFields;
  static constexpr std::array<const char*, 0> kCounters{};
  static constexpr std::array<const char*, 0> kEvents{};
  static constexpr std::array<const char*, 0> kEventValues{};
};

template <class S>
class SchemeOf final : public Scheme {
 public:
  using Setting = typename S::Setting;
  using Sender = typename S::Sender;
  using Receiver = typename S::Receiver;
  using DataFields = typename S::DataFields;
  using AckFields = typename S::AckFields;
  using CnpFields = typename S::CnpFields;

  // hosts: which NICs it is bound to; receivers: of the transport
  SchemeOf(const SchemeSpec& spec, const Transport& transport, std::vector<bool> hosts,
           const std::vector<QpReceiver>& receivers)
      : scheme_(spec, transport),
        hosts_(std::move(hosts)),
        receivers_of_qps_(receivers),
        settings_(hosts_.size(), Setting{}),
        nics_(hosts_.size()),
        lists_(kLists ? hosts_.size() : 0),
        names_{S::kName, rows_of(S::kKnobs), list(S::kCounters), list(S::kEvents),
               list(S::kEventValues)} {
    hears_data = kHearsData;
    hears_acks = kHearsAcks || kHearsMessages;
    writes_acks = kWritesAcks;
    hears_pauses = kHearsPauses;
    hears_ends = kHearsEnds;
    ticks = kTicks;
    windowed = kWindowed;
    shares = kLists || !std::is_same_v<DataFields, NoFields> ||
             !std::is_same_v<AckFields, NoFields> || !std::is_same_v<CnpFields, NoFields>;
    notes.counters.resize(S::kCounters.size());
  }
  const SchemeNames& names() const override { return names_; }

  // ---- settings ----
  std::unique_ptr<SchemeSettings> read_settings(const SiRows& rows) const override {
    auto read = std::make_unique<Settings>();
    read->of_host = settings_;
    const double* last = nullptr;
    std::size_t source = 0;
    for (std::size_t h = 0; h < hosts_.size(); ++h) {
      if (!hosts_[h]) continue;
      const double* row = rows.row(h);
      const bool same = last && std::equal(row, row + S::kKnobs.size(), last);
      read->of_host[h] = same ? read->of_host[source] : Setting::from_si(row);
      last = row;
      source = h;
    }
    return read;
  }
  Pace change_setting(std::uint32_t slot, const SchemeSettings& next, Time now) override {
    const std::size_t host = connections_[slot].src;
    const Setting& setting = static_cast<const Settings&>(next).of_host[host];
    if constexpr (requires(Sender& q, Here<S> h) { scheme_.change_setting(q, h.setting, h); }) {
      scheme_.change_setting(senders_[slot], settings_[host],
                             Here<S>{connections_[slot], setting, nics_[host], notes, now});
    }
    return scheme_.pace(senders_[slot], setting);
  }
  void put_in_force(const SchemeSettings& settings) override {
    settings_ = static_cast<const Settings&>(settings).of_host;
  }

  // ---- sender ----
  void open(std::uint32_t slot, const Connection& connection) override {
    if (slot >= senders_.size()) {
      senders_.resize(slot + 1);
      receivers_.resize(slot + 1);
      connections_.resize(slot + 1);
      places_.resize(kLists ? slot + 1 : 0);
    }
    senders_[slot] = Sender{};
    receivers_[slot] = Receiver{};
    connections_[slot] = connection;
    data_.open(slot);
    acks_.open(slot);
    cnps_.open(slot);
  }
  Pace start(std::uint32_t slot, Time now) override {
    if constexpr (kLists) {
      std::vector<std::uint32_t>& list = lists_[connections_[slot].src];
      places_[slot] = static_cast<std::uint32_t>(list.size());
      list.push_back(slot);
    }
    scheme_.start(senders_[slot], at_sender(slot, now));
    return pace(slot);
  }
  void end(std::uint32_t slot) override {
    if constexpr (kLists) {
      std::vector<std::uint32_t>& list = lists_[connections_[slot].src];
      list[places_[slot]] = list.back();
      places_[list.back()] = places_[slot];
      list.pop_back();
    }
  }
  Packet send(TransportLayer& transport, Qp& q, Time now) override {
    const std::uint32_t slot = slot_of(q.ref);
    const auto ask = [&, this](const Sent& sent) __attribute__((always_inline)) {
      Sender& sender = senders_[slot];
      if constexpr (kHearsSends) {
        DataFields fields{};
        scheme_.on_send(sender, sent, fields, here(slot, q.src, now));
        if constexpr (!std::is_same_v<DataFields, NoFields>) {
          if (connections_[slot].same_ends) data_.put(slot, now, fields);
        }
      }
      return scheme_.pace(sender, settings_[q.src]);
    };
    const Packet sent = transport.send_asking(q, now, ask);
    if constexpr (kSpaces) q.next_send = scheme_.next_send(senders_[slot], q.next_send);
    return sent;
  }
  Pace on_sent(std::uint32_t slot, const Sent& sent, Time now) override {
    if constexpr (kHearsSends && std::is_same_v<DataFields, NoFields>) {
      NoFields none;
      scheme_.on_send(senders_[slot], sent, none, at_sender(slot, now));
    }
    return pace(slot);
  }
  Pace on_cnp(std::uint32_t slot, int host, Time key, Time now) override {
    Sender& sender = senders_[slot];
    const Here<S> h = here(slot, host, now);
    if constexpr (kHearsCnps) scheme_.on_cnp(sender, cnps_.take(slot, key), h);
    return scheme_.pace(sender, h.setting);
  }
  Pace on_loss(std::uint32_t slot, int host, Time now) override {
    Sender& sender = senders_[slot];
    const Here<S> h = here(slot, host, now);
    if constexpr (kHearsCnps && std::is_same_v<CnpFields, NoFields>) {
      scheme_.on_cnp(sender, NoFields{}, h);
    }
    return scheme_.pace(sender, h.setting);
  }
  void prefetch(std::uint32_t slot) const override { prefetch_all(senders_[slot]); }
  Pace on_ack(std::uint32_t slot, const Acked& acked, Time key, Time now) override {
    if constexpr (kHearsAcks)
      scheme_.on_ack(senders_[slot], acked, acks_.take(slot, key), at_sender(slot, now));
    return pace(slot);
  }
  Pace on_message(std::uint32_t slot, const MessageDone& done, Time now) override {
    if constexpr (kHearsMessages) scheme_.on_message(senders_[slot], done, at_sender(slot, now));
    return pace(slot);
  }
  Pace pace(std::uint32_t slot) const override {
    return scheme_.pace(senders_[slot], settings_[connections_[slot].src]);
  }
  bool resting(std::uint32_t slot) const override {
    if constexpr (requires(const S& s, const Sender& q) { s.resting(q); }) {
      static_assert(std::is_same_v<DataFields, NoFields>, "every packet has its fields");
      return scheme_.resting(senders_[slot]);
    }
    return !kHearsSends;
  }
  Bytes window(std::uint32_t slot) const override {
    if constexpr (kWindowed) {
      return scheme_.window(senders_[slot], settings_[connections_[slot].src]);
    }
    return 0;
  }
  Pace pace_at(std::uint32_t slot, Time now) const override {
    const std::size_t host = connections_[slot].src;
    Sender sender = senders_[slot];
    if constexpr (requires(const S& s, Here<S> h) { s.catch_up(sender, now, h); }) {
      typename S::Nic nic = nics_[host];
      SchemeNotes unseen{std::vector<std::uint64_t>(S::kCounters.size()), {}, false};
      scheme_.catch_up(sender, now - 1,
                       Here<S>{connections_[slot], settings_[host], nic, unseen, now});
    }
    return scheme_.pace(sender, settings_[host]);
  }

  // ---- receiver ----
  Answer on_data(std::uint32_t slot, int host, const Arrived& arrived, bool may_answer, Time key,
                 Time cnp_key, Time now) override {
    const Here<S> h = here(slot, host, now);
    if constexpr (kHearsData) {
      const bool known = connections_[slot].same_ends;
      scheme_.on_data(receivers_[slot], arrived, known ? data_.take(slot, key) : DataFields{}, h);
    }
    if constexpr (kMarks) {
      if (!arrived.marked || !may_answer) return {};
      CnpFields fields{};
      const bool cnp = scheme_.on_mark(receivers_[slot], arrived, fields, h);
      if (cnp && h.connection.same_ends) cnps_.put(slot, cnp_key, fields);
      if constexpr (kQuiet) return {cnp, scheme_.quiet_until(receivers_[slot], h)};
      return {cnp, 0};
    }
    return {};
  }
  void on_reply(std::uint32_t slot, Time key, Time now) override {
    if constexpr (kWritesAcks) {
      AckFields fields{};
      scheme_.on_reply(receivers_[slot], fields, here(slot, connections_[slot].dst, now));
      if (connections_[slot].same_ends) acks_.put(slot, key, fields);
    }
  }

  void on_complete(std::uint32_t slot, Time now) override {
    if constexpr (kHearsEnds) {
      Ends<S> ends(*this, connections_[slot].dst, now);
      scheme_.on_complete(receivers_[slot], ends);
    }
  }
  CnpBits cnp_bits(std::uint32_t slot, Time key) const override {
    if constexpr (requires(const S& s, CnpFields f) { s.bits_of(f); }) {
      if (connections_[slot].same_ends) return scheme_.bits_of(cnps_.look(slot, key));
    }
    return {};
  }

  // ---- NIC ----
  void on_pause(int host, unsigned priority, bool paused, Time now) override {
    if constexpr (kHearsPauses) {
      Ends<S> ends(*this, host, now);
      scheme_.on_pause(priority, paused, ends);
    }
  }
  Time next_tick(int host) const override {
    if constexpr (kTicks) return scheme_.next_tick(nics_[static_cast<std::size_t>(host)]);
    return kNever;
  }
  std::uint32_t tick(int host, Time now) override {
    if constexpr (kTicks) {
      Ends<S> ends(*this, host, now);
      scheme_.tick(ends);
      if (ends.cnp_ == kNoCnp) return kNoCnp;
      const std::uint32_t slot = slot_of(ends.cnp_);
      if (connections_[slot].same_ends) cnps_.put(slot, now, ends.fields_);
      return ends.cnp_;
    }
    return kNoCnp;
  }
  const std::vector<std::uint32_t>& senders_of(int host) const override {
    return lists_[static_cast<std::size_t>(host)];
  }

  void visit(Archive& a) override {
    a(touched_senders, notes);
    a.all<SchemeOf>(Built<Scheme>{}, built(scheme_), built(hosts_), BuiltPointer{},
                    built(settings_), nics_, senders_, receivers_, connections_, places_, lists_,
                    data_, acks_, cnps_, built(names_));
  }

 private:
  friend class Ends<S>;
  struct Settings final : SchemeSettings {
    std::vector<Setting> of_host;
  };

  static constexpr bool kWindowed =
      requires(const S& s, const Sender& q, const Setting& x) { s.window(q, x); };
  static constexpr bool kHearsSends =
      requires(S& s, Sender& q, Sent x, DataFields& f, Here<S> h) { s.on_send(q, x, f, h); };
  static constexpr bool kSpaces = requires(const S& s, const Sender& q) { s.next_send(q, Time{}); };
  static constexpr bool kHearsCnps =
      requires(S& s, Sender& q, CnpFields f, Here<S> h) { s.on_cnp(q, f, h); };
  static constexpr bool kHearsAcks =
      requires(S& s, Sender& q, Acked x, AckFields f, Here<S> h) { s.on_ack(q, x, f, h); };
  static constexpr bool kHearsMessages =
      requires(S& s, Sender& q, MessageDone x, Here<S> h) { s.on_message(q, x, h); };
  static constexpr bool kHearsData =
      requires(S& s, Receiver& r, Arrived x, DataFields f, Here<S> h) { s.on_data(r, x, f, h); };
  static constexpr bool kMarks =
      requires(S& s, Receiver& r, Arrived x, CnpFields& f, Here<S> h) { s.on_mark(r, x, f, h); };
  static constexpr bool kQuiet =
      requires(const S& s, const Receiver& r, Here<S> h) { s.quiet_until(r, h); };
  static constexpr bool kWritesAcks =
      requires(S& s, Receiver& r, AckFields& f, Here<S> h) { s.on_reply(r, f, h); };
  static constexpr bool kHearsPauses = requires(S& s, Ends<S>& e) { s.on_pause(0u, true, e); };
  static constexpr bool kHearsEnds =
      requires(S& s, Receiver& r, Ends<S>& e) { s.on_complete(r, e); };
  static constexpr bool kTicks = requires(S& s, Ends<S>& e) { s.tick(e); };
  static constexpr bool kLists = kHearsPauses || kTicks;
  // a hook with other arguments would never be called
  static_assert(kHearsSends || !requires { &S::on_send; });
  static_assert(kSpaces || !requires { &S::next_send; });
  static_assert(kHearsCnps || !requires { &S::on_cnp; });
  static_assert(kHearsAcks || !requires { &S::on_ack; });
  static_assert(kHearsMessages || !requires { &S::on_message; });
  static_assert(kHearsData || !requires { &S::on_data; });
  static_assert(kMarks || !requires { &S::on_mark; });
  static_assert(kQuiet || !requires { &S::quiet_until; });
  static_assert(kWritesAcks || !requires { &S::on_reply; });
  static_assert(kHearsPauses || !requires { &S::on_pause; });
  static_assert(kHearsEnds || !requires { &S::on_complete; });
  static_assert(kTicks || !requires { &S::tick; });

  template <class Names>
  static std::vector<const char*> list(const Names& names) {
    return {names.begin(), names.end()};
  }
  Here<S> here(std::uint32_t slot, int host, Time now) {
    const std::size_t at = static_cast<std::size_t>(host);
    return {connections_[slot], settings_[at], nics_[at], notes, now};
  }
  Here<S> at_sender(std::uint32_t slot, Time now) {
    return here(slot, connections_[slot].src, now);
  }
  // Both tests say the same at any instant of the receiver: a slot is used again only after its
  // receiver was complete for a link's delay. So the answer is that of every engine.
  Receiver* receiving(std::uint32_t ref) {
    const std::uint32_t slot = slot_of(ref);
    const QpReceiver& r = receivers_of_qps_[slot];
    return r.ref == ref && !r.complete ? &receivers_[slot] : nullptr;
  }

  S scheme_;
  std::vector<bool> hosts_;
  const std::vector<QpReceiver>& receivers_of_qps_;
  std::vector<Setting> settings_;      // by host
  std::vector<typename S::Nic> nics_;  // by host
  std::vector<Sender> senders_;        // by slot, as the rest
  std::vector<Receiver> receivers_;
  std::vector<Connection> connections_;
  std::vector<std::uint32_t> places_;              // in lists_
  std::vector<std::vector<std::uint32_t>> lists_;  // by host: slots that send
  Lanes<DataFields> data_;
  Lanes<AckFields> acks_;
  Lanes<CnpFields> cnps_;
  SchemeNames names_;
};

}  // namespace dcqcn
