// The plain engine: one heap of events, every packet and timer in global time order. It is the
// oracle of the window engine, so it is written to be obviously right, not fast.
#pragma once

#include <memory>
#include <queue>

#include "model/base/ring.hpp"
#include "model/fabric/pause.hpp"
#include "model/fabric/shared_buffer.hpp"
#include "sim/engine.hpp"

namespace dcqcn {

class EventEngine final : public Engine {
 public:
  explicit EventEngine(const World& world);
  void run(Time until) override;
  void settings_changed(Time now) override;
  void set_ecn(const std::vector<EcnSetting>& per_port) override;
  void report_ports(Time now, std::vector<PortReport>& out) override;
  PortSample sample_port(int port, Time now) const override;
  void visit(Archive& a) override {
    a.all<EventEngine>(BuiltPointer{}, built(world_), events_, ports_, nics_, buffers_,
                       built(starts_), chained_);
  }

 private:
  enum class What : std::uint8_t {
    kPfc,
    kRto,
    kDelayedCnp,
    kTick,
    kDequeue,
    kArrival,
    kFlow,
    kJob
  };
  struct Event {
    Time when;
    std::uint64_t order;  // what, then port, host or QP slot
    bool operator>(const Event& o) const {
      return when != o.when ? when > o.when : order > o.order;
    }
  };
  struct Port {
    PortSpec spec;
    Time busy = 0;         // free from this instant on
    Time wake = kNever;    // of the pending dequeue event
    Ring<PfcFrame> pfc;    // waiting to be sent
    Ring<Packet> control;  // ACK and CNP, strict priority
    Ring<Packet> data[8];
    Bytes queued[8] = {};
    Bytes queued_total = 0;
    unsigned last_served = 7;  // data priority, round robin
    PauseClock pause;
    Ring<Packet> wire;
    Ring<PfcFrame> pfc_wire;
    EcnSetting ecn;
    RandomStream draws;
    PortCounters counters;
    Deficits deficits;

    // bits of the priorities whose data may go now
    unsigned ready() const {
      unsigned bits = 0;
      for (unsigned p = 0; p < 8; ++p) {
        if (!data[p].empty() && !pause.paused(p)) bits |= 1u << p;
      }
      return bits;
    }
    void visit(Archive& a) {
      a.all<Port>(built(spec), busy, wake, pfc, control, data, queued, queued_total, last_served,
                  pause, wire, pfc_wire, ecn, draws, counters, deficits);
    }
  };
  struct Nic {
    std::vector<std::uint32_t> slots;  // QP slot or kNone, the round-robin order
    std::uint32_t last_served = 0;
    Ring<Packet> delayed_cnps;
    Time tick_due = kNever;  // of the pending tick event
    Time job_due = kNever;   // of the pending event of a job

    void visit(Archive& a) { a.all<Nic>(slots, last_served, delayed_cnps, tick_due, job_due); }
  };

  void handle(const Event& e);
  void schedule(What what, std::uint64_t id, Time when);
  void wake(Port& port, Time when);
  void kick(Port& port, Time now);
  void service(Port& port, Time now);
  void transmit(Port& port, Packet p, Time now);
  void transmit_data(Port& port, Time now);
  bool transmit_from_nic(Port& port, Time now);
  bool pick_priority(Port& port, unsigned& priority) const;

  void on_pfc(Port& port, Time now);
  void on_arrival(Port& port, Time now);
  void switch_arrival(Port& in, Packet p, Time now);
  void host_arrival(int host, const Packet& p, Time now);
  void start_flow(const FlowStart& flow, Time now);
  void take_chained();
  void send_pfc(int node, unsigned in_port, unsigned priority, bool pause, Time now);
  void on_rto(std::uint32_t ref, Time now);
  void arm_tick(int host);
  void on_tick(int host, Time now);
  void arm_jobs();
  void on_job(int host, Time now);
  void send_replies(int host, const Replies& replies, Time now);

  Port& port_of(int node, unsigned index) {
    return ports_[static_cast<std::size_t>(world_.topology.first_port(node)) + index];
  }
  std::uint64_t id_of(const Port& p) const { return static_cast<std::uint64_t>(&p - &ports_[0]); }
  SharedBuffer& buffer(int node) {
    return buffers_[static_cast<std::size_t>(node - world_.topology.hosts())];
  }

  World world_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<Port> ports_;
  std::vector<Nic> nics_;
  std::vector<SharedBuffer> buffers_;
  std::vector<FlowStart> starts_;
  Ring<FlowStart> chained_;
};

}  // namespace dcqcn
