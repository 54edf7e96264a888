// Merge of sorted runs of 64-bit keys: the window engine's replacement for an event queue.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace dcqcn {

// Arrivals of one window: key = (time - window start) << 28 | in-port << 16 | place in its ring.
// Keys are unique, so sorting them gives the order of the contract: by time, then by in-port.
struct ArrivalKey {
  static constexpr int kPlaceBits = 16;
  static constexpr int kPortBits = 12;
  static std::uint64_t make(std::uint64_t offset, std::uint32_t port, std::uint32_t place) {
    return offset << (kPlaceBits + kPortBits) | static_cast<std::uint64_t>(port) << kPlaceBits |
           place;
  }
  static std::int64_t offset(std::uint64_t k) {
    return static_cast<std::int64_t>(k >> (kPlaceBits + kPortBits));
  }
  static std::uint32_t port(std::uint64_t k) {
    return static_cast<std::uint32_t>(k >> kPlaceBits) & ((1u << kPortBits) - 1);
  }
  static std::uint32_t place(std::uint64_t k) {
    return static_cast<std::uint32_t>(k) & ((1u << kPlaceBits) - 1);
  }
};

class RunList {
 public:
  void clear() {
    count_ = 0;
    starts_.clear();
    run_ = ~0u;
  }
  std::uint32_t size() const { return count_; }
  // add to the run of `source`; a source adds all its keys, in order, before the next one does
  void add_to_run(std::uint32_t source, std::uint64_t key) {
    if (source != run_) {
      run_ = source;
      starts_.push_back(count_);
    }
    add(key);
  }
  // the keys in order; `scratch` is overwritten
  const std::uint64_t* sorted(std::vector<std::uint64_t>& scratch) {
    if (starts_.size() < 2) return keys_.data();
    if (scratch.size() < keys_.size()) scratch.resize(keys_.size());
    std::uint64_t* from = keys_.data();
    std::uint64_t* to = scratch.data();
    starts_.push_back(count_);
    std::size_t runs = starts_.size() - 1;
    while (runs > 1) {
      std::size_t kept = 0;
      for (std::size_t i = 0; i < runs; i += 2) {
        const std::uint32_t a = starts_[i];
        if (i + 1 == runs) {
          std::memcpy(to + a, from + a, (count_ - a) * sizeof(*to));
        } else {
          merge(from + a, from + starts_[i + 1], from + starts_[i + 2], to + a);
        }
        starts_[kept++] = a;
      }
      starts_[kept] = count_;
      runs = kept;
      std::swap(from, to);
    }
    return from;
  }

 private:
  void add(std::uint64_t key) {
    if (count_ == keys_.size()) keys_.resize(keys_.empty() ? 64 : keys_.size() * 2);
    keys_[count_++] = key;
  }

  // From both ends at once: neither end can run out of either run before the shorter one would, and
  // the two chains of comparisons do not wait for each other.
  static void merge(const std::uint64_t* x, const std::uint64_t* middle, const std::uint64_t* end,
                    std::uint64_t* out) {
    const std::uint64_t* y = middle;
    const std::uint64_t* x_last = middle - 1;
    const std::uint64_t* y_last = end - 1;
    std::uint64_t* out_last = out + (end - x) - 1;
    for (auto steps = std::min(middle - x, end - middle); steps > 0; --steps) {
      const std::uint64_t a = *x, b = *y;  // branch-free choices
      const bool first = a < b;
      *out++ = first ? a : b;
      x += first;
      y += !first;
      const std::uint64_t c = *x_last, d = *y_last;
      const bool last = c > d;
      *out_last-- = last ? c : d;
      x_last -= last;
      y_last -= !last;
    }
    while (x <= x_last && y <= y_last) {
      const std::uint64_t a = *x, b = *y;
      const bool first = a < b;
      *out++ = first ? a : b;
      x += first;
      y += !first;
    }
    while (x <= x_last) *out++ = *x++;
    while (y <= y_last) *out++ = *y++;
  }

  std::vector<std::uint64_t> keys_;
  std::vector<std::uint32_t> starts_;
  std::uint32_t count_ = 0;
  std::uint32_t run_ = ~0u;
};

}  // namespace dcqcn
