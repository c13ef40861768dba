// SPDX-License-Identifier: Apache-2.0
// A thread on another core that runs one job at a time for the measuring thread.
#pragma once

#include <atomic>
#include <ctime>
#include <exception>
#include <functional>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "base/cpu.hpp"

namespace wherry::bench {

/// CPU time of the calling thread, ns (CLOCK_THREAD_CPUTIME_ID, some 100 ns): time that other processes run on its core
/// is left out. A hypervisor's share is included.
inline std::uint64_t cpu_ns() noexcept {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(t.tv_nsec);
}

/// One thread makes all calls. A job may throw: finish() throws its exception again.
class OtherCore {
 public:
  explicit OtherCore(int core) : thread_([this, core] { run(core); }) {}
  OtherCore(const OtherCore&) = delete;
  OtherCore& operator=(const OtherCore&) = delete;
  ~OtherCore() {
    wait();
    leave_ = true;
    state_.store(kAsked, std::memory_order_release);
    thread_.join();
  }
  /// Starts a job and returns. Precondition: finish() was called for the job before.
  void start(std::function<void()> job) {
    job_ = std::move(job);
    state_.store(kAsked, std::memory_order_release);
  }
  /// Waits for its end.
  void finish() {
    wait();
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }
  void run_there(std::function<void()> job) {
    start(std::move(job));
    finish();
  }

 private:
  static constexpr int kIdle = 0, kAsked = 1;
  void wait() noexcept {
    Spinner spinner;
    while (state_.load(std::memory_order_acquire) != kIdle) spinner.pause(now_ns());
  }
  void run(int core) noexcept {
    (void)pin_thread({core});  // a machine that refuses has been told by main() already
    for (;;) {
      Spinner spinner;
      while (state_.load(std::memory_order_acquire) != kAsked) spinner.pause(now_ns());
      if (leave_) return;
      try {
        job_();
      } catch (...) {
        error_ = std::current_exception();
      }
      state_.store(kIdle, std::memory_order_release);
    }
  }
  std::atomic<int> state_ = kIdle;
  bool leave_ = false;
  std::function<void()> job_;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace wherry::bench
