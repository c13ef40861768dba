// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace wherry {

/// Limits work to a tenth of its thread's time, with bursts of 5 ms. One thread.
class TimeShare {
 public:
  /// Records that the work took `spent` nanoseconds of thread_cpu_ns(), which does not count time in which the process
  /// is stopped. `now`: now_ns(). Returns 0 if more work may follow at once, else the earliest time for it.
  std::uint64_t charge(std::uint64_t spent, std::uint64_t now) noexcept {
    const auto earned = static_cast<std::int64_t>(now - charged_at_) / kParts;
    left_ns_ = std::min(kBurstNs, left_ns_ + earned) - static_cast<std::int64_t>(spent);
    charged_at_ = now;
    return left_ns_ > 0 ? 0 : now + static_cast<std::uint64_t>(kBurstNs - left_ns_ * kParts);
  }

 private:
  static constexpr std::int64_t kBurstNs = 5'000'000;
  static constexpr std::int64_t kParts = 10;
  std::int64_t left_ns_ = kBurstNs;
  std::uint64_t charged_at_ = 0;
};

}  // namespace wherry
