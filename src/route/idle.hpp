// SPDX-License-Identifier: Apache-2.0
// How a polling thread waits when it finds no work.
#pragma once

#include <sched.h>

#include <cstdint>

#include "base/cpu.hpp"

namespace wherry::route {

/// Counts consecutive idle turns. The first turns spin, because an answer may arrive soon. Later turns yield the core,
/// because the thread that must produce the answer may share it.
class IdleTurns {
 public:
  static constexpr std::uint64_t kSpins = 16;

  /// Call it after a turn that found work.
  void reset() noexcept { turns_ = 0; }
  /// Call it after a turn without work.
  void wait() noexcept {
    if (++turns_ < kSpins) return cpu_relax();
    sched_yield();
  }
  [[nodiscard]] std::uint64_t count() const noexcept { return turns_; }

 private:
  std::uint64_t turns_ = 0;
};

}  // namespace wherry::route
