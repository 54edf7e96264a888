// A FIFO of values that starts small and doubles when full; indices run on and are masked.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

namespace dcqcn {

template <class T>
class Ring {
 public:
  bool empty() const { return head_ == tail_; }
  std::uint32_t size() const { return tail_ - head_; }
  T& front() { return data_[head_ & mask_]; }
  const T& front() const { return data_[head_ & mask_]; }
  T& operator[](std::uint32_t i) { return data_[(head_ + i) & mask_]; }
  const T& operator[](std::uint32_t i) const { return data_[(head_ + i) & mask_]; }
  // room for one more at the end; the caller fills it
  T& push_slot() {
    if (size() == mask_ + 1) grow();
    return data_[tail_++ & mask_];
  }
  void push(const T& value) { push_slot() = value; }
  T pop() { return data_[head_++ & mask_]; }
  void drop(std::uint32_t n = 1) { head_ += n; }
  // fetch what is `ahead` places behind the front, or the slot that is filled then
  void prefetch_front(std::uint32_t ahead) const {
    __builtin_prefetch(&data_[(head_ + ahead) & mask_], 0);
  }
  void prefetch_end(std::uint32_t ahead) { __builtin_prefetch(&data_[(tail_ + ahead) & mask_], 1); }

 private:
  [[gnu::noinline]] void grow() {
    const std::uint32_t capacity = data_ ? (mask_ + 1) * 2 : 8;
    auto bigger = std::make_unique_for_overwrite<T[]>(capacity);  // no zeros first
    const std::uint32_t n = size();
    for (std::uint32_t i = 0; i < n; ++i) bigger[i] = (*this)[i];
    data_ = std::move(bigger);
    mask_ = capacity - 1;
    head_ = 0;
    tail_ = n;
  }

  std::unique_ptr<T[]> data_;
  std::uint32_t mask_ = ~0u;  // capacity - 1
  std::uint32_t head_ = 0;
  std::uint32_t tail_ = 0;
};

}  // namespace dcqcn
