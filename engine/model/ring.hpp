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
  T& front() { return data_[head_ & (capacity_ - 1)]; }
  const T& front() const { return data_[head_ & (capacity_ - 1)]; }
  T& operator[](std::uint32_t i) { return data_[(head_ + i) & (capacity_ - 1)]; }
  const T& operator[](std::uint32_t i) const { return data_[(head_ + i) & (capacity_ - 1)]; }
  // room for one more at the end; the caller fills it
  T& push_slot() {
    if (size() == capacity_) grow();
    return data_[tail_++ & (capacity_ - 1)];
  }
  void push(const T& value) { push_slot() = value; }
  T pop() { return data_[head_++ & (capacity_ - 1)]; }
  void drop(std::uint32_t n = 1) { head_ += n; }
  // fetch what is `ahead` places behind the front, or the slot that is filled then
  void prefetch_front(std::uint32_t ahead) const {
    __builtin_prefetch(&data_[(head_ + ahead) & (capacity_ - 1)], 0);
  }
  void prefetch_end(std::uint32_t ahead) {
    __builtin_prefetch(&data_[(tail_ + ahead) & (capacity_ - 1)], 1);
  }

 private:
  [[gnu::noinline]] void grow() {
    const std::uint32_t capacity = capacity_ ? capacity_ * 2 : 8;
    auto bigger = std::make_unique<T[]>(capacity);
    const std::uint32_t n = size();
    for (std::uint32_t i = 0; i < n; ++i) bigger[i] = (*this)[i];
    data_ = std::move(bigger);
    capacity_ = capacity;
    head_ = 0;
    tail_ = n;
  }

  std::unique_ptr<T[]> data_;
  std::uint32_t capacity_ = 0;
  std::uint32_t head_ = 0;
  std::uint32_t tail_ = 0;
};

}  // namespace dcqcn
