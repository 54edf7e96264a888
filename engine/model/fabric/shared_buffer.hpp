// The shared buffer of one switch: dynamic threshold, reserve, headroom, and the PFC decisions.
// Counters are kept per ingress port and data priority; ACK and CNP (but those that
// PfcConfig::in_class names) and PFC frames are outside.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "model/base/archive.hpp"
#include "model/base/units.hpp"
#include "model/fabric/packet.hpp"

namespace dcqcn {

struct PfcConfig {
  bool enabled = true;
  std::uint8_t lossless = 1u << 3;  // bit per priority
  double alpha = 0.125;
  Bytes reserve = 4096;
  Bytes resume_offset = 3072;
  std::uint8_t acks_as_data = 0;   // bit per priority: ACKs and NACKs wait among its data
  std::uint8_t cnps_as_data = 0;   // the same of CNPs
  std::array<double, 8> shares{};  // alphas of priorities; 0: the port's

  bool operator==(const PfcConfig&) const = default;

  bool is_lossless(unsigned priority) const { return enabled && (lossless >> priority & 1); }
  // does it wait at switches among the data of its priority, not ahead of all?
  bool in_class(const Packet& p) const {
    const std::uint8_t bits = p.type() == Kind::kCnp ? cnps_as_data : acks_as_data;
    return p.is_data() || (bits >> p.priority & 1);
  }
  // may it be dropped? What answers lossless data may not.
  bool may_drop(const Packet& p) const {
    return p.is_data() || !is_lossless(static_cast<unsigned>(p.priority));
  }
};

class SharedBuffer {
 public:
  struct Ingress {
    Bytes used = 0;      // reserve and shared
    Bytes headroom = 0;  // in use
    Bytes headroom_limit = 0;
    double alpha = 0;
    bool paused = false;
  };

  SharedBuffer() = default;
  // headrooms: one limit per port, for each lossless priority of it
  SharedBuffer(const PfcConfig& pfc, Bytes capacity, const std::vector<Bytes>& headrooms)
      : pfc_(pfc), ingress_(headrooms.size() * 8) {
    pool_ = capacity;
    put_alphas([&](std::size_t) { return pfc.alpha; });
    for (std::size_t port = 0; port < headrooms.size(); ++port) {
      for (unsigned p = 0; p < 8; ++p) {
        if (pfc.is_lossless(p)) {
          ingress_[port * 8 + p].headroom_limit = headrooms[port];
          pool_ -= headrooms[port] + pfc.reserve;
        }
      }
    }
    if (!pfc.enabled) pool_ -= static_cast<Bytes>(headrooms.size()) * pfc.reserve;
  }

  Bytes pool() const { return pool_; }  // shared bytes when nothing is queued
  Bytes shared_used() const { return shared_; }
  // of the port or priority with the smallest alpha
  Bytes threshold_at(Bytes shared_used) const { return share(least_alpha_, shared_used); }
  Bytes threshold() const { return threshold_at(shared_); }
  const PfcConfig& pfc() const { return pfc_; }
  Ingress& ingress(unsigned port, unsigned priority) { return ingress_[port * 8 + priority]; }
  const Ingress& ingress(unsigned port, unsigned priority) const {
    return ingress_[port * 8 + priority];
  }

  // one a port, from now on: what comes or goes next is judged by it
  void set_alphas(const std::vector<double>& by_port) {
    put_alphas([&](std::size_t port) { return by_port[port]; });
  }

  // take a packet in; false: it must be dropped. One that may not be lost, an ACK or a CNP, goes to
  // the headroom when that is full too: a paused host still sends them, and no data beside them.
  bool admit(unsigned port, unsigned priority, Bytes bytes, bool may_drop = true) {
    Ingress& in = ingress(port, priority);
    if (in.used + bytes <= pfc_.reserve) {
      in.used += bytes;
      return true;
    }
    const Bytes limit = share(in.alpha, shared_);
    if (in.used + bytes - pfc_.reserve > limit) {
      if (may_drop && in.headroom + bytes > in.headroom_limit &&
          shared_part(in.used) + bytes > limit) {
        return false;
      }
      in.headroom += bytes;
      return true;
    }
    in.used += bytes;
    shared_ += bytes < in.used - pfc_.reserve ? bytes : in.used - pfc_.reserve;
    return true;
  }

  // a packet left: headroom first, then shared, then reserve
  void release(unsigned port, unsigned priority, Bytes bytes) {
    Ingress& in = ingress(port, priority);
    const Bytes from_headroom = bytes < in.headroom ? bytes : in.headroom;
    in.headroom -= from_headroom;
    bytes -= from_headroom;
    const Bytes over = shared_part(in.used);
    shared_ -= bytes < over ? bytes : over;
    in.used -= bytes;
  }

  // what a sequence of admissions and releases that never touched headroom has come to
  void set_used(unsigned port, unsigned priority, Bytes used) {
    Ingress& in = ingress(port, priority);
    shared_ += shared_part(used) - shared_part(in.used);
    in.used = used;
  }

  // after an enqueue: must this ingress be paused now?
  bool should_pause(unsigned port, unsigned priority) const {
    if (!pfc_.is_lossless(priority)) return false;
    const Ingress& in = ingress(port, priority);
    return !in.paused && (in.headroom > 0 || shared_part(in.used) >= share(in.alpha, shared_));
  }

  // after a dequeue: may this ingress go on?
  bool should_resume(unsigned port, unsigned priority) const {
    const Ingress& in = ingress(port, priority);
    if (!in.paused || in.headroom != 0) return false;
    const Bytes over = shared_part(in.used);
    return over == 0 || over + pfc_.resume_offset <= share(in.alpha, shared_);
  }

  void visit(Archive& a) {
    a.all<SharedBuffer>(built(pfc_), least_alpha_, pool_, shared_, ingress_);
  }

 private:
  template <class OfPort>
  void put_alphas(OfPort&& of_port) {
    for (std::size_t i = 0; i < ingress_.size(); ++i) {
      const double own = pfc_.shares[i % 8];
      ingress_[i].alpha = own > 0 ? own : of_port(i / 8);
      least_alpha_ = i == 0 ? ingress_[i].alpha : std::min(least_alpha_, ingress_[i].alpha);
    }
  }
  Bytes share(double alpha, Bytes shared_used) const {
    const Bytes free = pool_ - shared_used;
    return free > 0 ? static_cast<Bytes>(alpha * static_cast<double>(free)) : 0;
  }
  Bytes shared_part(Bytes used) const { return used > pfc_.reserve ? used - pfc_.reserve : 0; }

  PfcConfig pfc_;
  double least_alpha_ = 0;
  Bytes pool_ = 0;
  Bytes shared_ = 0;
  std::vector<Ingress> ingress_;
};

}  // namespace dcqcn
