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
  T& back() { return data_[(tail_ - 1) & mask_]; }
  void push(const T& value) {
    if (!data_ || size() > mask_) grow();
    data_[tail_++ & mask_] = value;
  }
  T pop() { return data_[head_++ & mask_]; }
  void drop() { ++head_; }

 private:
  void grow() {
    const std::uint32_t capacity = data_ ? (mask_ + 1) * 2 : 8;
    auto bigger = std::make_unique<T[]>(capacity);
    const std::uint32_t n = size();
    for (std::uint32_t i = 0; i < n; ++i) bigger[i] = (*this)[i];
    data_ = std::move(bigger);
    mask_ = capacity - 1;
    head_ = 0;
    tail_ = n;
  }

  std::unique_ptr<T[]> data_;
  std::uint32_t mask_ = 0;
  std::uint32_t head_ = 0;
  std::uint32_t tail_ = 0;
};

}  // namespace dcqcn
