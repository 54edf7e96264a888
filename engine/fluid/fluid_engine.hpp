// The fluid engine: flows are rates, queues are integrals. Starts, arrivals, completions and CNPs
// are events with exact times; in between, bytes move a step at a time, one hop a step. Reaction
// points, notification points, jobs and traffic are those of the packet engine. PFC frames are not
// counted (a limit on what comes in stands for them), only the time that they cost. What is
// approximate and how wrong it is: docs/measured/fluid.md.
//
//   fluid_engine.cpp   events, starts and ends of flows, settings, reports
//   fluid_step.cpp     a step: ports, queues, marks, pauses, what NICs send
#pragma once

#include <queue>
#include <span>
#include <vector>

#include "model/base/prefetch.hpp"
#include "model/base/random_stream.hpp"
#include "model/base/ring.hpp"
#include "model/fabric/shared_buffer.hpp"
#include "sim/engine.hpp"

namespace dcqcn {

class FluidEngine final : public Engine {
 public:
  // throws std::invalid_argument for what it cannot do: another scheme than DCQCN, several
  // priorities, TCP, loss, ACKs in the class of their data, monitors that need packets in order
  explicit FluidEngine(const World& world);
  void run(Time until) override;
  void settings_changed(Time) override {}
  void set_ecn(const std::vector<EcnSetting>& per_port) override;
  void report_ports(Time now, std::vector<PortReport>& out) override;
  PortSample sample_port(int port, Time now) const override;
  void visit(Archive& a) override;

 private:
  enum class What : std::uint8_t { kSent, kMark, kCnp, kArrival, kAck, kJob, kFlow, kStep };
  struct Event {
    Time when;
    std::uint32_t ref;  // of a queue pair; or a host
    std::uint32_t seq;  // that ends the message
    std::uint64_t order;
    bool operator>(const Event& o) const {
      return when != o.when ? when > o.when : order > o.order;
    }
  };

  // A figure that grows by parts and is reported in whole numbers.
  struct Sum {
    double grown = 0;
    std::uint64_t taken = 0;
    void add(double part) { grown += part; }
    std::uint64_t take() {
      const std::uint64_t whole = static_cast<std::uint64_t>(grown) - taken;
      taken += whole;
      return whole;
    }
  };

  // One egress port. In bytes and steps; what is `kept` and `drained` lies at the far end, in the
  // switch that the port leads to, by which PFC pauses it. What each stream touches is one line.
  struct alignas(kCacheLine) Port {
    double keep = 0;      // share of the queue that stays for another step
    double unmarked = 1;  // probability
    double wait = 0;      // ps
    double queued = 0;    // at the end of the step
    double kept = 0;
    double drained = 0;
    double sent = 0;    // in this step
    double left = 0;    // what stayed behind in this step
    double burst = 0;   // that has come since the step began, besides what streams
    double bucket = 0;  // what is left of that, and of what is on its way, at bucket_at
    Time bucket_at = 0;
    double speed = 0;  // at which it is served now, bytes per ps
    double rate = 0;   // bytes per ps
    double per_step = 0;
    double open = 1;  // share of the step in which it is not paused
    std::uint32_t reverse = 0;
    std::uint32_t node = 0;
    std::uint32_t users = 0;
    bool listed = false;
    bool paused = false;
    EcnSetting ecn;
    // ---- of the interval ----
    Sum tx, packets, marked, marked_bytes;
    double paused_ps = 0;
    double max_queue = 0;
  };

  struct Hop {
    double bytes = 0;  // of the stream, queued at this port
    std::uint32_t port = 0;
  };
  static constexpr std::uint32_t kMostHops = 8;

  // A queue pair with bytes to send or in the network. Every step touches all that are on the move,
  // so with thousands of hosts fetching them is what a step costs: its bytes and its way are one
  // line of the cache each, what it sends another, what only marks and starts need is apart.
  struct alignas(kCacheLine) Stream {
    std::uint32_t count = 0;  // of hops
    std::uint32_t ref = 0;
    std::uint32_t host_port = 0;
    std::uint32_t leaving = 0;  // messages whose last packet has not left
    double left = 0;            // of the message under way, on the wire
    double in_network = 0;      // bytes
    double wait = 0;            // in queues, ps
    double part_rtts = 0, part_samples = 0;
    int tor = 0;
    bool live = false;

    alignas(kCacheLine) double rate = 0;  // that paces it, bytes per ps
    double wanted = 0;
    Time free_at = 0;  // nothing may be sent before
    double part_packets = 0, part_payload = 0;
    std::uint32_t flow_key = 0;
    std::uint32_t host = 0;
    Time forward = 0, backward = 0;  // of a packet and of its ACK, without queues

    alignas(kCacheLine) Hop hops[kMostHops];  // egress ports of switches

    Time last_hop = 0;
    Time quiet_until = 0;
    double phase = 0;       // packets until the next one comes that could make a CNP
    double until_mark = 0;  // what is left of an exponential threshold until one is marked
    RandomStream draws;
  };

  static constexpr std::uint32_t kNoStream = ~0u;
  struct Place {
    std::uint32_t stream = kNoStream;
    Time last_arrival = 0;  // of a message
  };

  // ---- fluid_engine.cpp ----
  void check() const;
  void schedule(What what, Time when, std::uint32_t ref, std::uint32_t seq);
  void handle(const Event& e);
  void start_flow(const FlowStart& flow, Time now);
  void take_chained();
  void arm_jobs();
  void on_job(int host, Time now);
  void on_cnp(std::uint32_t ref, Time now);
  std::uint32_t open_stream(const Qp& q);
  void close_stream(std::uint32_t id);
  void use_port(std::uint32_t port);
  Stream* stream_of(std::uint32_t ref);

  // ---- fluid_step.cpp ----
  void step(Time now);
  void serve_ports();
  void serve(Port& p);
  void move_streams(Time now);
  void mark(Stream& s, double packets, double probability, Time now);
  void draw_mark(Stream& s);
  void on_mark(Stream& s, Time when);
  void pause_ports();
  double open_share(const Port& p, std::size_t far_switch) const;
  void send_from_hosts(Time now);
  double ask_streams(std::vector<std::uint32_t>& list, Time now);
  double fair_level(const std::vector<std::uint32_t>& list, double most) const;
  double wants(const Stream& s, double rate, Time from, Time end) const;
  double wait_of(const Stream& s, Time now) const;
  double room_of(const Stream& s) const;
  void send(Stream& s, double bytes, Time from, double rate, bool burst);
  void send_part(Stream& s, double bytes, Time end, bool last);
  void end_message(Stream& s, Qp& q, double begun, double part, double rate);
  void on_sent(Stream& s, std::uint32_t end_seq, Time now);
  Bytes tail_of(const Message& m) const;
  static void add_burst(Port& p, double bytes, Time now, bool here);
  void sample(Stream& s, double packets, double wait);

  World world_;
  Time step_;
  double frame_;     // bytes of a full packet on the wire
  double payload_;   // of these
  double ack_load_;  // bytes of ACKs for a byte of data
  unsigned priority_ = 3;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t order_ = 0;
  Time stepped_ = -1;  // begin of the current step; -1: none is under way
  std::vector<Port> ports_;
  std::vector<std::uint32_t> used_;  // ports with streams or queues
  std::vector<SharedBuffer> buffers_;
  std::vector<double> shared_;  // per switch
  std::vector<Stream> streams_;
  std::vector<std::uint32_t> free_;
  std::vector<Place> places_;                        // by slot of a queue pair
  std::vector<std::vector<std::uint32_t>> of_host_;  // streams with bytes to send
  std::vector<std::uint32_t> busy_hosts_;
  std::vector<std::uint32_t> active_;  // streams
  std::vector<Time> job_due_;
  std::vector<FlowStart> starts_;
  Ring<FlowStart> chained_;
  Time interval_begin_ = 0;
  Sum marks_, hops_, delivered_, acks_;
};

}  // namespace dcqcn
