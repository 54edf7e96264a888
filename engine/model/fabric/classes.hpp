// Traffic classes: what a switch does differently for the packets of one priority, and the
// scheduler that shares a port among them.
#pragma once

#include <array>
#include <bit>

#include "model/base/units.hpp"
#include "model/settings/settings.hpp"

namespace dcqcn {

inline constexpr unsigned kPriorities = 8;

struct ClassSpec {
  int weight = 1;
  bool tcp = false;        // its flows are those of model/flows/tcp.hpp, which can lose packets
  bool own_curve = false;  // else the port's
  EcnSetting curve;
  double alpha = 0;  // its share of the free buffer; 0: the port's
  unsigned dscp = 26;

  bool operator==(const ClassSpec& o) const {
    return weight == o.weight && tcp == o.tcp && own_curve == o.own_curve &&
           curve.kmin == o.curve.kmin && curve.kmax == o.curve.kmax && curve.pmax == o.curve.pmax &&
           alpha == o.alpha && dscp == o.dscp;
  }
};

struct Classes {
  std::array<ClassSpec, kPriorities> of{};  // by priority
  std::uint8_t declared = 0;                // bit per priority; 0: no classes, plain round robin
  std::uint8_t tcp = 0;

  const EcnSetting& curve(unsigned priority, const EcnSetting& of_port) const {
    return of[priority].own_curve ? of[priority].curve : of_port;
  }
  bool operator==(const Classes&) const = default;
};

// Deficit weighted round robin (Shreedhar and Varghese, SIGCOMM 1995) over the priorities of one
// port. When it is a priority's turn it may send its weight times the largest frame more; its turn
// lasts while the packet at its head fits. What is left is kept, unless its queue is empty or
// pauses in its turn.
class Deficits {
 public:
  // the priority to serve, of the `ready` ones (bits, at least one); it was `current`'s turn;
  // head(priority) is the size of its first packet
  template <class Head>
  unsigned pick(unsigned ready, unsigned current, const Classes& classes, Bytes frame,
                Head&& head) {
    if (!(ready >> current & 1)) left_[current] = 0;
    while (!(ready >> current & 1) || head(current) > left_[current]) {
      const unsigned first = current + 1;
      const unsigned turned = (ready | ready << kPriorities) >> first;
      current = (first + static_cast<unsigned>(std::countr_zero(turned))) % kPriorities;
      left_[current] += classes.of[current].weight * frame;
    }
    return current;
  }
  void sent(unsigned priority, Bytes bytes, bool empty) {
    left_[priority] = empty ? 0 : left_[priority] - bytes;
  }
  // pick and sent when no other priority is ready; `more`: what one turn adds
  void sent_alone(unsigned current, unsigned priority, Bytes bytes, Bytes more, bool empty) {
    if (current != priority) left_[current] = 0;
    if (current != priority || bytes > left_[priority]) left_[priority] += more;
    sent(priority, bytes, empty);
  }
  Bytes left(unsigned priority) const { return left_[priority]; }

 private:
  Bytes left_[kPriorities] = {};
};

}  // namespace dcqcn
