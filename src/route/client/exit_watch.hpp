// SPDX-License-Identifier: Apache-2.0
#pragma once
// Makes exit() count as leaving the job for the ranks of a process.
#include <pthread.h>

#include <atomic>
#include <functional>

#include "route/presence.hpp"

namespace wherry::route::detail {

/// While it lives, other ranks see an exit() of the process as this rank's departure. If the thread that uses the
/// runtime calls exit(0), that calls `leave`, which leaves the job as the destructor does. Otherwise only ranks that
/// share memory with this one learn that it has left.
class ExitWatch {
 public:
  /// `leave` must not throw.
  ExitWatch(Presence presence, std::function<void()> leave);
  ~ExitWatch();
  ExitWatch(const ExitWatch&) = delete;
  ExitWatch& operator=(const ExitWatch&) = delete;
  /// Records that the calling thread uses the runtime.
  void used_here() noexcept { user_.store(pthread_self(), std::memory_order_relaxed); }

 private:
  friend struct ExitWatches;
  void at_exit(int status) noexcept;
  const Presence presence_;
  const std::function<void()> leave_;
  std::atomic<pthread_t> user_{pthread_self()};
};

}  // namespace wherry::route::detail
