// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <chrono>
#include <cstdint>
#include <thread>

#include "base/clock.hpp"
#include "base/cpu.hpp"

namespace wherry {

/// Waits in three steps: it spins while an answer is likely soon, then yields the core, then sleeps (a wake-up costs
/// about 60 us).
class Patience {
 public:
  void pause() noexcept {
    const std::uint64_t waited = now_ns() - since_;
    if (waited < 50'000) {
      cpu_relax();
    } else if (waited < 2'000'000) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }

 private:
  std::uint64_t since_ = now_ns();
};

}  // namespace wherry
