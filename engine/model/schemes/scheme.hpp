// What the transport and the engines see of a congestion-control scheme: calls at the ends of a
// queue pair and of a NIC. schemes/scheme_of.hpp makes a Scheme of a plain struct of hooks such as
// schemes/dcqcn.hpp, so nothing outside this folder knows a scheme by name.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/base/archive.hpp"
#include "model/base/units.hpp"
#include "model/fabric/packet.hpp"
#include "model/settings/knobs.hpp"

namespace dcqcn {

struct Qp;
struct Transport;
class TransportLayer;

// the line `scheme` of a compiled scenario
struct SchemeSpec {
  std::string name = "dcqcn";
  std::vector<std::pair<std::string, std::string>> options;  // the scheme's own key=value pairs
  std::vector<int> hosts;                                    // empty: every other host
  int line = 0;
  bool complete = false;  // every option has to be written

  bool operator==(const SchemeSpec& o) const {  // wherever it was written
    return name == o.name && options == o.options && hosts == o.hosts;
  }
  // throws std::invalid_argument with the line
  [[noreturn]] void fail(const std::string& why) const;
  // the value of `key`, one of `known` (the first one is the default)
  std::string choice(const std::string& key, const std::vector<std::string>& known) const;
  // refuses an option that is not among `known`
  void allow(const std::vector<std::string>& known) const;
};

// knob values in SI units: one row a NIC, columns in the order of its scheme's knobs
struct SiRows {
  const double* values = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;
  const double* row(std::size_t i) const { return values + i * columns; }
};

// what paces a queue pair from now on
struct Pace {
  Rate rate = 0;    // of the scheme
  Rate pacing = 0;  // that spaces packets; differs where a limiter has let go
};

// a queue pair, as both of its ends know it
struct Connection {
  std::uint32_t ref = 0;
  std::uint16_t src = 0;
  std::uint16_t dst = 0;
  std::uint32_t workload = 0;
  unsigned priority = 3;
  Rate line = 0;             // of the sender's link
  bool same_ends = true;     // the receiver's NIC runs the same scheme: fields are understood
  std::uint16_t number = 0;  // among the connections of the two hosts
};

struct Sent {
  Bytes payload = 0;
  bool last = false;  // of its message
  bool retransmit = false;
  Bytes bytes = 0;  // of the frame
};

struct Acked {
  Time rtt = 0;               // 0: a NACK, which is no sample
  std::uint32_t packets = 0;  // acknowledged for the first time
};

struct MessageDone {
  Bytes bytes = 0;
  Time start = 0;
  Time ideal = 0;  // completion time in an idle network
};

struct Arrived {
  Bytes payload = 0;
  bool marked = false;
  bool in_order = false;
  bool done = false;  // nothing of this queue pair is missing any more
};

// what a receiver makes of a packet
struct Answer {
  bool cnp = false;      // one is to be sent
  Time quiet_until = 0;  // marks before that change nothing and get no CNP
};

// what a CNP says on a real wire, for captures
struct CnpBits {
  std::uint8_t seven = 0;      // the 7 reserved bits beside the acknowledge request of its BTH
  std::uint32_t reserved = 0;  // the first 4 of its 16 reserved bytes
};

// one thing that a scheme traced; `what` and `values` are named by the scheme
struct SchemeEvent {
  Time when = 0;
  int src = 0;
  int dst = 0;
  unsigned what = 0;
  std::array<double, 5> values{};
};

// counters of the interval, and the trace while it is wanted
struct SchemeNotes {
  std::vector<std::uint64_t> counters;
  std::vector<SchemeEvent> events;
  bool tracing = false;

  // hosts may count at the same time
  void count(unsigned counter) {
    std::atomic_ref<std::uint64_t>(counters[counter]).fetch_add(1, std::memory_order_relaxed);
  }
  void trace(const Connection& c, Time when, unsigned what, const std::array<double, 5>& values) {
    if (tracing) note({when, c.src, c.dst, what, values});
  }

  void visit(Archive& a) { a.all<SchemeNotes>(counters, events, tracing); }

 private:
  [[gnu::noinline]] void note(const SchemeEvent& event) { events.push_back(event); }
};

// what a scheme is called, and how its rows of knobs, counters and events are
struct SchemeNames {
  const char* name = "";
  std::vector<KnobRow> knobs;         // columns of SiRows
  std::vector<const char*> counters;  // of SchemeNotes::counters
  std::vector<const char*> events;    // of SchemeEvent::what
  std::vector<const char*> values;    // of SchemeEvent::values
};

// Settings of all NICs of one scheme, read and checked but not yet in force.
class SchemeSettings {
 public:
  virtual ~SchemeSettings() = default;
};

// Fields that ride on data, ACKs and CNPs do not travel in the 32-byte Packet: the scheme keeps
// them beside it, under the packet's `sent` (see schemes/lane.hpp). `key` is that value.
class Scheme {
 public:
  virtual ~Scheme() = default;
  virtual const SchemeNames& names() const = 0;

  // ---- what it wants to hear of; the rest is never called ----
  bool hears_data = false;   // every data packet at the receiver, not only marked ones
  bool hears_acks = false;   // at the sender; also completed messages
  bool writes_acks = false;  // fields on ACKs
  bool hears_pauses = false;
  bool hears_ends = false;  // a queue pair's receiver has everything
  bool ticks = false;
  bool windowed = false;  // has a window of its own
  bool shares = false;    // hosts reach what others use: fields on packets, lists of queue pairs

  // ---- settings ----
  virtual std::unique_ptr<SchemeSettings> read_settings(const SiRows& rows) const = 0;
  virtual Pace change_setting(std::uint32_t slot, const SchemeSettings& next, Time now) = 0;
  virtual void put_in_force(const SchemeSettings& settings) = 0;

  // ---- sender, by slot of its queue pair; `host` is the NIC that it sends from ----
  // fresh states at both ends; the NIC of each end has to hear of it, once if they share a scheme
  virtual void open(std::uint32_t slot, const Connection& connection) = 0;
  virtual Pace start(std::uint32_t slot, Time now) = 0;
  virtual void end(std::uint32_t slot) = 0;
  // TransportLayer::send_asking this scheme
  virtual Packet send(TransportLayer& transport, Qp& q, Time now) = 0;
  // many packets at once, of a scheme whose data carry no fields
  virtual Pace on_sent(std::uint32_t slot, const Sent& sent, Time now) = 0;
  virtual Pace on_cnp(std::uint32_t slot, int host, Time key, Time now) = 0;
  // a packet was lost, where that acts as a CNP; nothing to schemes whose CNPs carry fields
  virtual Pace on_loss(std::uint32_t slot, int host, Time now) = 0;
  virtual void prefetch(std::uint32_t slot) const = 0;  // what on_cnp will touch
  virtual Pace on_ack(std::uint32_t slot, const Acked& acked, Time key, Time now) = 0;
  virtual Pace on_message(std::uint32_t slot, const MessageDone& done, Time now) = 0;
  virtual Pace pace(std::uint32_t slot) const = 0;
  // do sends change nothing until something else is heard?
  virtual bool resting(std::uint32_t slot) const = 0;
  // bytes in flight, of a scheme that is `windowed`; else the scenario's transport says
  virtual Bytes window(std::uint32_t slot) const = 0;
  // what would pace it if all timers before `now` had run; changes nothing
  virtual Pace pace_at(std::uint32_t slot, Time now) const = 0;

  // ---- receiver; `host` is the NIC where it is ----
  // the CNP has `cnp_key`; there is none if `may_answer` is false
  virtual Answer on_data(std::uint32_t slot, int host, const Arrived& arrived, bool may_answer,
                         Time key, Time cnp_key, Time now) = 0;
  virtual void on_reply(std::uint32_t slot, Time key, Time now) = 0;
  virtual void on_complete(std::uint32_t slot, Time now) = 0;

  // of a CNP on its way; for captures
  virtual CnpBits cnp_bits(std::uint32_t slot, Time key) const = 0;

  // ---- NIC ----
  virtual void on_pause(int host, unsigned priority, bool paused, Time now) = 0;
  virtual Time next_tick(int host) const = 0;
  // returns the queue pair that gets a CNP (with key `now`), or kNoCnp
  static constexpr std::uint32_t kNoCnp = ~0u;
  virtual std::uint32_t tick(int host, Time now) = 0;
  // queue pairs that send from this host; only of a scheme that ticks or hears pauses
  virtual const std::vector<std::uint32_t>& senders_of(int host) const = 0;
  bool touched_senders = false;  // by the last on_pause() or tick(); the caller takes it back

  SchemeNotes notes;

  // all but the settings in force, see Simulation
  virtual void visit(Archive& a) = 0;
};

}  // namespace dcqcn
