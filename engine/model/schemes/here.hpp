// What hooks of a scheme may use; scheme_of.hpp calls them.
#pragma once

#include <cstdint>

#include "model/schemes/scheme.hpp"

namespace dcqcn {

// what a hook of one queue pair's end may use besides the state of that end
template <class S>
struct Here {
  const Connection& connection;
  const typename S::Setting& setting;  // of the NIC at this end
  typename S::Nic& nic;
  SchemeNotes& notes;
  Time now;
};

template <class S>
class SchemeOf;

// what a NIC-wide hook may use
template <class S>
class Ends {
 public:
  int host() const { return host_; }
  Time now() const { return now_; }
  const typename S::Setting& setting() const { return scheme_.settings_[at()]; }
  typename S::Nic& nic() const { return scheme_.nics_[at()]; }
  SchemeNotes& notes() const { return scheme_.notes; }
  // f(Sender&, Here) for every queue pair that sends from here
  template <class F>
  void for_each_sender(F&& f) const {
    scheme_.touched_senders = true;
    for (const std::uint32_t slot : scheme_.lists_[at()]) {
      f(scheme_.senders_[slot], scheme_.here(slot, host_, now_));
    }
  }
  // the receiver of this queue pair (Connection::ref); null once it has everything
  typename S::Receiver* receiver(std::uint32_t ref) const { return scheme_.receiving(ref); }
  // the CNP that this tick sends, at most one; nothing is sent to a completed queue pair
  void send_cnp(std::uint32_t ref, const typename S::CnpFields& fields) {
    if (!receiver(ref)) return;
    cnp_ = ref;
    fields_ = fields;
  }

 private:
  friend class SchemeOf<S>;
  Ends(SchemeOf<S>& scheme, int host, Time now) : scheme_(scheme), host_(host), now_(now) {}
  std::size_t at() const { return static_cast<std::size_t>(host_); }

  SchemeOf<S>& scheme_;
  int host_;
  Time now_;
  std::uint32_t cnp_ = Scheme::kNoCnp;
  typename S::CnpFields fields_{};
};

}  // namespace dcqcn
