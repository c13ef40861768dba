// SPDX-License-Identifier: Apache-2.0
// How a thread that polls waits when it has found nothing to do.
#pragma once

#include <sched.h>

#include <cstdint>

#include "base/cpu.hpp"

namespace wherry::route {

/// Counts idle turns in a row. The first ones spin, since an answer may be on its way. From then on each yields the
/// core: the thread that has to produce the answer may share it.
class IdleTurns {
 public:
  static constexpr std::uint64_t kSpins = 16;

  /// A turn has found something.
  void reset() noexcept { turns_ = 0; }
  /// A turn has found nothing.
  void wait() noexcept {
    if (++turns_ < kSpins) return cpu_relax();
    sched_yield();
  }
  [[nodiscard]] std::uint64_t count() const noexcept { return turns_; }

 private:
  std::uint64_t turns_ = 0;
};

}  // namespace wherry::route
