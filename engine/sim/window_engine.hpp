// The window engine: no event queue. All influence between nodes crosses a link, so with W = the
// smallest link delay every node can be advanced alone through [T, T + W): read the in-link rings,
// merge by (time, in-port), write the out-link rings. docs/measured/engine.md explains it with a
// picture.
//
//   window_engine.cpp    the loop over windows and nodes, settings, reports
//   window_host.cpp      NICs: round robin over QPs, arrivals, flow starts
//   window_fast.cpp      switches while PFC provably cannot fire: one egress port at a time
//   window_ordered.cpp   switches otherwise: everything in strict time order
//   window_state.cpp     what of all this is state, for snapshots
//   window_lanes.cpp     nodes split over threads
#pragma once

#include <atomic>
#include <bit>
#include <memory>
#include <utility>
#include <vector>

#include "model/base/prefetch.hpp"
#include "model/base/ring.hpp"
#include "model/fabric/pause.hpp"
#include "model/fabric/shared_buffer.hpp"
#include "sim/crew.hpp"
#include "sim/engine.hpp"
#include "sim/merge.hpp"

namespace dcqcn {

class WindowEngine final : public Engine {
 public:
  static constexpr Time kLongestWindow = 20 * kPicosPerMicro;
  // max_window: an upper bound on W, for tests that vary it; always: threads share windows too in
  // which there is hardly anything to do
  explicit WindowEngine(const World& world, std::size_t threads = 1,
                        Time max_window = kLongestWindow, bool always = false);
  void run(Time until) override;
  void settings_changed(Time now) override;
  void set_ecn(const std::vector<EcnSetting>& per_port) override;
  void report_ports(Time now, std::vector<PortReport>& out) override;
  PortSample sample_port(int port, Time now) const override;
  void visit(Archive& a) override;

 private:
  // One egress port of a switch or NIC. Every window looks at all ports, so what tells whether one
  // has something to do lies on its first two cache lines.
  struct alignas(kCacheLine) Port {
    Time busy = 0;                 // free from this instant on
    Ring<Packet> wire;             // what is on its way to the peer, by arrival
    Ring<Packet> control;          // ACK and CNP, strict priority
    std::uint8_t backlog = 0;      // bit per priority: data is queued
    std::uint8_t last_served = 7;  // data priority, round robin
    std::uint32_t peer_node = 0;
    Ring<PfcFrame> pfc;  // waiting to be sent
    Ring<PfcFrame> pfc_wire;
    Time ps_per_byte = 80;
    PauseClock pause;
    Time delay = 0;
    Bytes queued_total = 0;
    Bytes queued[8] = {};
    Ring<Packet> data[8];  // by priority
    EcnSetting ecn;
    RandomStream draws;
    PortCounters counters;
    Deficits deficits;

    void visit(Archive& a);
    // a PFC frame from the far end takes effect
    void take(const PfcFrame& frame, Time now) {
      ++counters.pfc_received;
      pause.take(frame.priority, frame.pause, now);
    }
    unsigned ready() const { return backlog & static_cast<std::uint8_t>(~pause.bits()); }
    bool eligible() const { return (backlog && ready()) || !control.empty() || !pfc.empty(); }
  };

  struct Switch {
    Port* ports = nullptr;
    std::uint32_t degree = 0;
    std::vector<Port*> from;  // the peers' egress ports, by in-port
    std::vector<bool> from_host;
    SharedBuffer buffer;
    std::uint32_t paused_ingresses = 0;
    std::uint32_t apart = 0;  // so many windows are taken in halves without a look at packets
    std::vector<Bytes> window_bytes;  // what one window can bring, by in-port

    void visit(Archive& a);
  };

  struct Due {  // a QP that waits for its pacing, or a retransmission timer
    Time when;
    std::uint32_t id;
    bool operator<(const Due& o) const { return when > o.when; }  // std heaps keep the largest
  };
  enum class Place : std::uint8_t { kFree, kIdle, kWaiting, kReady };

  struct Nic {
    Port* port = nullptr;
    Port* from = nullptr;            // the switch's egress towards this host
    std::vector<std::uint32_t> qps;  // place -> QP slot
    std::vector<Place> places;
    std::vector<std::uint64_t> ready;  // bitmap of places
    std::vector<Due> waiting;          // heap
    std::vector<Due> rtos;             // heap of QP refs
    std::uint32_t ready_count = 0;
    std::uint32_t last_served = 0;
    Ring<FlowStart> starts;
    Ring<FlowStart> chained;
    Ring<Packet> delayed_cnps;  // `arrival` is when they enter the queue

    void visit(Archive& a);
  };

  // What one thread works with. Switches of one class have no links to each other, so that a class
  // runs at the same time without two threads at one link.
  struct Stop {  // a host whose next event is not its own matter alone
    std::uint32_t host;
    Time since;
  };
  struct alignas(kCacheLine) Lane {
    std::vector<std::uint32_t> switches[2];  // by class
    std::vector<std::uint32_t> hosts;
    std::vector<Stop> stops;
    Totals totals;
    std::vector<RunList> by_egress;
    RunList recorded;
    std::vector<FlowRun> flow_runs;
    std::vector<std::uint64_t> scratch;
    std::vector<std::uint32_t> taken;       // fast path: packets of this window by in-port
    std::vector<std::uint8_t> seen;         // fast path: priorities of this window by out-port
    std::vector<Bytes> used;                // fast path: bytes in the buffer, see used_at
    std::vector<std::uint64_t> tournament;  // ordered path: the next dequeue, by port
  };

  // ---- window_engine.cpp ----
  void build_ports();
  void build_nodes();
  void hand_out_flows(Time end);
  Time earliest_wake() const;
  // one colour of nodes: 0 hosts, and switches an odd number of links from those of hosts; 1 others
  void run_colour(int colour, Time begin, Time end);
  void run_hosts(Time begin, Time end);
  void run_switch(Lane& lane, std::uint32_t s, Time begin, Time end);
  void update_wake(std::uint32_t node, Time when) {
    const std::atomic_ref<Time> wake(wakes_[node]);
    Time known = wake.load(std::memory_order_relaxed);
    if (when >= known) return;
    if (!crew_) return wake.store(when, std::memory_order_relaxed);
    while (when < known && !wake.compare_exchange_weak(known, when, std::memory_order_relaxed)) {
    }
  }

  // ---- window_lanes.cpp ----
  void make_lanes(std::size_t threads);
  std::vector<int> colours_of_switches() const;
  void share_out(std::size_t lanes, const std::vector<int>& colours);
  bool worth_sharing(Time end) const;
  void run_colour_shared(int colour, Time begin, Time end);
  void finish_stops(Time end);

  // ---- window_host.cpp ----
  void run_host(Lane& lane, std::uint32_t host, Time begin, Time end);
  // more: NIC-wide ticks of schemes, and events of jobs? apart: other hosts run at the same time
  template <bool more, bool apart>
  void run_host(Lane& lane, std::uint32_t host, Time begin, Time end);
  void run_nic(Nic& nic, Time from, Time last);
  bool take_ready(Nic& nic, std::uint32_t& place);
  void send_from(Nic& nic, std::uint32_t place, Time now);
  void set_ready(Nic& nic, std::uint32_t place);
  void wait_until_due(Nic& nic, std::uint32_t place, Time when);
  void release_due(Nic& nic, Time now);
  void reconsider(Nic& nic, Qp& q);
  void reconsider_idle(Nic& nic);
  void host_packet(std::uint32_t host, Nic& nic, const Packet& p, Time now);
  void start_flow(Nic& nic, const FlowStart& flow, Time now);
  void run_job(std::uint32_t host, Nic& nic, Time now);
  void wake_for_jobs();
  void host_pfc(std::uint32_t host, Nic& nic, const PfcFrame& frame, Time now);
  void run_rto(Nic& nic, Time now);
  void run_tick(std::uint32_t host, Nic& nic, Time now);
  void run_timers(std::uint32_t host, Nic& nic, Time now);
  void send_replies(Nic& nic, const Replies& replies, Time now);
  void forget(Nic& nic, std::uint32_t place);
  void arm_rto(Nic& nic, const Qp& q);
  Time host_wake(std::uint32_t host, const Nic& nic) const;

  // put a packet on the wire
  static void transmit(Port& port, const Packet& p, Time now) {
    Packet& w = port.wire.push_slot();
    w = p;
    port.busy = now + p.bytes * port.ps_per_byte;
    w.arrival = port.busy + port.delay;
  }

  // ---- window_fast.cpp ----
  // look: at the packets on the links, if what links can carry is too much
  bool pfc_cannot_fire(const Switch& sw, Time begin, Time end, bool look) const;
  // what waits at ports, apart from control packets: data of one priority, that and its ACKs, or
  // packets of several classes
  enum class Waiting : std::uint8_t { kData, kOne, kMany };
  void run_switch_fast(Lane& lane, std::uint32_t s, Time begin, Time end);
  template <Waiting waiting>
  void run_switch_fast(Lane& lane, std::uint32_t s, Time begin, Time end);
  template <Waiting waiting>
  static std::size_t used_at(std::size_t in_port, unsigned priority) {
    return waiting == Waiting::kData ? in_port : in_port * kPriorities + priority;
  }
  template <typename BytesOf>
  bool stays_below(const Switch& sw, BytesOf&& bytes_of) const;
  template <bool pausing, Waiting waiting>
  void run_port_fast(Lane& lane, Switch& sw, Port& port, Time begin, Time end);
  // a packet of the only priority that is ready leaves
  void take_only_turn(Port& port, unsigned last, unsigned priority, Bytes bytes, bool empty) const {
    const Bytes more = world_.scenario.classes.of[priority].weight * max_packet_;
    port.deficits.sent_alone(last, priority, bytes, more, empty);
  }
  template <bool pausing, Waiting waiting>
  void run_egress_fast(Lane& lane, Switch& sw, Port& port, unsigned ours, Time begin, Time end);
  template <Waiting waiting, typename Count>
  std::uint32_t sort_by_egress(Lane& lane, const Switch& sw, int node, std::uint32_t in_port,
                               Time begin, Time end, Count&& count);
  template <Waiting waiting>
  void sort_arrivals(Lane& lane, std::uint32_t s, Time begin, Time end);
  void record_arrivals(Lane& lane, std::uint32_t s, Time begin, Time end);

  // ---- window_ordered.cpp ----
  struct OrderedWindow;
  void run_switch_ordered(Lane& lane, std::uint32_t s, Time begin, Time end);
  Time gather_ordered(OrderedWindow& w, RunList& arrivals, std::uint32_t* taken);
  void run_ordered_until(OrderedWindow& w, const std::uint64_t*& next, const std::uint64_t* last,
                         Time until);
  Time take_pauses(OrderedWindow& w, Time now);
  void ordered_arrival(OrderedWindow& w, const Packet& in, std::uint32_t in_port, Time now);
  // whose turn it is among the `ready` priorities (bits, at least one) after the `last` one served:
  // round robin, or by weight
  unsigned take_turn(Port& port, unsigned last, unsigned ready) const {
    if (weighted_) return weighted_turn(port, last, ready);
    const unsigned turned = (ready | ready << kPriorities) >> (last + 1);
    return (last + 1 + static_cast<unsigned>(std::countr_zero(turned))) % kPriorities;
  }
  unsigned weighted_turn(Port& port, unsigned last, unsigned ready) const;
  // does it wait at switches among the data of its priority?
  bool waits_in_class(const Packet& p) const {
    return in_class_ >> (p.kind * kPriorities | p.priority) & 1;
  }
  template <bool kicked>
  void service(OrderedWindow& w, Port& port, Time now);
  void kick(OrderedWindow& w, Port& port, Time now);
  void transmit_data(OrderedWindow& w, Port& port, unsigned priority, Time now);
  void send_pfc(OrderedWindow& w, std::uint32_t in_port, unsigned priority, bool pause, Time now);

  World world_;
  Time window_;
  Time lead_ = 0;     // of one colour of nodes before the other; 0 where nodes of one share a link
  Time host_window_;  // what a host does reaches no other sooner, unless by links
  Time now_ = 0;
  Bytes max_packet_;
  std::vector<unsigned> priorities_;  // those of workloads
  unsigned priority_;                 // the first of them
  bool one_priority_;                 // a pause stops all data of a NIC
  bool weighted_;                     // instead of plain round robin
  bool control_waits_;                // ACKs or CNPs among data too
  std::uint32_t in_class_;            // bit per kind of packet and priority: waits_in_class
  std::vector<Port> ports_;
  std::vector<Switch> switches_;
  std::vector<Nic> nics_;
  std::vector<Time> wakes_;  // per node: nothing happens there before
  std::vector<FlowStart> flows_;
  std::vector<std::uint32_t> switches_of_[2];  // by colour
  std::vector<Lane> lanes_;                    // one a thread, at least one
  std::unique_ptr<Crew> crew_;                 // null: one thread
  std::size_t least_awake_;                    // nodes in a window that is worth two barriers
};

}  // namespace dcqcn
