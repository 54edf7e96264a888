// Threads that do one thing together, again and again: a barrier before and one after. They look
// for work for some microseconds and then sleep, so that a busy machine is not kept busy by
// waiting. What a thread has not begun when the caller is through with its own share, the caller
// does.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

namespace dcqcn {

class Crew {
 public:
  // the caller of run() has share 0; `shares` - 1 threads have the others
  explicit Crew(std::size_t shares) : failures_(shares), begun_(shares) {
    for (std::size_t share = 1; share < shares; ++share) {
      threads_.emplace_back([this, share] { serve(share); });
    }
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew() {
    stop_.store(true, std::memory_order_relaxed);
    begin();
    for (std::thread& t : threads_) t.join();
  }

  // work(share) for every share at the same time; throws what the first one that failed threw
  template <class Work>
  void run(Work&& work) {
    work_ = &work;
    call_ = [](void* with, std::size_t share) {
      (*static_cast<std::remove_reference_t<Work>*>(with))(share);
    };
    left_.store(static_cast<std::uint32_t>(threads_.size()), std::memory_order_relaxed);
    const std::uint32_t round = begin();
    attempt(0);
    for (std::size_t share = 1; share < failures_.size(); ++share) take(share, round);
    for (std::uint32_t left; (left = left_.load(std::memory_order_acquire)) != 0;) {
      wait_while(left_, left);
    }
    for (std::exception_ptr& failure : failures_) {
      if (failure) std::rethrow_exception(std::exchange(failure, nullptr));
    }
  }

 private:
  static constexpr int kLooks = 1000;

  static void wait_while(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
    for (int i = 0; i < kLooks; ++i) {
      if (value.load(std::memory_order_acquire) != old) return;
      pause();
    }
    value.wait(old, std::memory_order_acquire);
  }
  static void pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  std::uint32_t begin() {
    const std::uint32_t round = round_.fetch_add(1, std::memory_order_release) + 1;
    round_.notify_all();
    return round;
  }
  // a share of a round, unless somebody has begun it
  void take(std::size_t share, std::uint32_t round) {
    std::uint32_t before = round - 1;
    std::atomic<std::uint32_t>& begun = begun_[share].round;
    if (!begun.compare_exchange_strong(before, round, std::memory_order_acq_rel)) return;
    attempt(share);
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.notify_one();
  }
  void attempt(std::size_t share) {
    try {
      call_(work_, share);
    } catch (...) {
      failures_[share] = std::current_exception();
    }
  }
  void serve(std::size_t share) {
    for (std::uint32_t seen = 0;;) {
      wait_while(round_, seen);
      seen = round_.load(std::memory_order_acquire);
      if (stop_.load(std::memory_order_relaxed)) return;
      take(share, seen);
    }
  }

  struct alignas(64) Begun {
    std::atomic<std::uint32_t> round{0};
  };
  std::vector<std::exception_ptr> failures_;  // by share
  std::vector<Begun> begun_;                  // by share: its last round
  std::atomic<bool> stop_{false};
  void* work_ = nullptr;
  void (*call_)(void*, std::size_t) = nullptr;
  alignas(64) std::atomic<std::uint32_t> round_{0};
  alignas(64) std::atomic<std::uint32_t> left_{0};
  std::vector<std::thread> threads_;
};

}  // namespace dcqcn
