// SPDX-License-Identifier: Apache-2.0
// Cores: which ones this process may use, where a thread runs, and how a poller waits politely.
#pragma once

#include <sched.h>

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

/// Of a loop that asks without end. Others that do may be more than the cores, and one of them has the answer: it goes
/// to them now and then. Where nobody wants the core that costs some hundred nanoseconds.
class Spinner {
 public:
  static constexpr unsigned kTurns = 32;
  /// `every`: so many turns it gives way; 1 where it is known that another one has to run before there is an answer.
  explicit Spinner(unsigned every = kTurns) noexcept : every_(every) {}
  void pause() noexcept {
    if (++turns_ % every_ == 0)
      sched_yield();
    else
      cpu_relax();
  }

 private:
  unsigned every_, turns_ = 0;
};

}  // namespace wherry
