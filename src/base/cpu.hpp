// SPDX-License-Identifier: Apache-2.0
// Cores: which ones this process may use, where a thread runs, and how a poller waits politely.
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

/// Of a loop that asks without end. Others that do may be more than the cores, and one of them has the answer: after a
/// while without one it goes to them. Where nobody wants the core that costs some hundred nanoseconds.
class Spinner {
 public:
  /// About what it costs to go to another and to come back. Who gives way sooner may miss an answer that is on its way;
  /// who waits longer keeps the core from who has to make it.
  static constexpr std::uint64_t kPatienceNs = 3000;

  /// `shares`: it is known that others on this core have to run before there is an answer.
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
  /// There was something; it waits anew.
  void restart() noexcept { until_ns_ = 0; }
  /// The same, and its part is done: if it shares its core, the next pause is the others' turn.
  void done() noexcept { until_ns_ = shares_ ? 1 : 0; }

 private:
  bool shares_;
  std::uint64_t until_ns_ = 0;  ///< 0: from the next pause on
};

}  // namespace wherry
