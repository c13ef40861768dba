// SPDX-License-Identifier: Apache-2.0
// Cores: which ones this process may use, where a thread runs, and how a poller waits without blocking others.
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
/// "boot id / pid namespace / user namespace" of this process: equal strings mean that shared memory and CMA can work.
std::string host_identity();
void name_thread(const char* name) noexcept;

/// One spin of a busy loop.
inline void cpu_relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

/// The pause of a polling loop. There may be more polling threads than cores, and one of them may produce the answer.
/// So after some polls without an answer, the loop yields its core. If no other thread wants the core, a yield costs
/// some hundred nanoseconds.
class Spinner {
 public:
  /// About the cost of two context switches. A shorter spin may miss an answer that is about to arrive. A longer spin
  /// keeps the core from the thread that produces the answer.
  static constexpr std::uint64_t kPatienceNs = 3000;

  /// `shares`: other threads of this core must run before there can be an answer.
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
  /// The poll found work: the count of idle polls starts again.
  void restart() noexcept { until_ns_ = 0; }
  /// The same, and this thread has done its part. If it shares its core, the next pause yields at once.
  void done() noexcept { until_ns_ = shares_ ? 1 : 0; }

 private:
  bool shares_;
  std::uint64_t until_ns_ = 0;  ///< 0: from the next pause on
};

}  // namespace wherry
