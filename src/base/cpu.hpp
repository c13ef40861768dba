// SPDX-License-Identifier: Apache-2.0
// Cores that this process may use, pinning of threads, and polling that does not block other threads.
#pragma once

#include <sched.h>

#include <cstdint>
#include <string>
#include <vector>

#include "wherry/status.hpp"

namespace wherry {

/// Cores that the calling thread may run on, ascending.
std::vector<int> allowed_cores();
int current_core() noexcept;
/// Pins the calling thread. kInvalidArgument names the core if the machine or the container does not have it.
Status pin_thread(const std::vector<int>& cores);
/// "boot id / pid namespace / user namespace". Shared memory and CMA can work between processes with equal strings.
std::string host_identity();
void name_thread(const char* name) noexcept;

/// A pause instruction for a busy loop.
inline void cpu_relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

/// Pauses a polling loop. If there are more polling threads than cores, the thread that produces the answer may need
/// this core. So the loop yields its core after some polls without an answer. A yield costs a few hundred nanoseconds
/// if no other thread wants the core.
class Spinner {
 public:
  /// About the cost of two context switches. A shorter spin may miss an answer that is about to arrive. A longer spin
  /// keeps the core from the thread that produces the answer.
  static constexpr std::uint64_t kPatienceNs = 3000;

  /// `shares`: another thread on this core produces the answer, so it must run first.
  explicit Spinner(bool shares = false) noexcept : shares_(shares) {}
  void pause(std::uint64_t now_ns) noexcept {
    if (until_ns_ == 0) until_ns_ = now_ns + kPatienceNs;
    if (now_ns < until_ns_) {
      cpu_relax();
    } else {
      sched_yield();
      until_ns_ = 0;
    }
  }
  /// The poll found work: restarts the time until the loop yields.
  void restart() noexcept { until_ns_ = 0; }
  /// Like restart(), after this thread has done its part. If it shares its core, the next pause yields at once.
  void done() noexcept { until_ns_ = shares_ ? 1 : 0; }

 private:
  bool shares_;
  std::uint64_t until_ns_ = 0;  ///< 0: from the next pause on
};

}  // namespace wherry
