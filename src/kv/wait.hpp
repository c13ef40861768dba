// SPDX-License-Identifier: Apache-2.0
// Waiting for descriptors, with the time in cycles. It does not count while the machine sleeps, unlike lease_clock().
#pragma once

#include <poll.h>

#include <algorithm>
#include <ctime>
#include <span>

#include "kv/message.hpp"

namespace wherry::kv {

/// Until one of them is ready, or for so long: to the nanosecond, where poll(2) knows milliseconds only. A signal ends
/// it, too. Descriptors below 0 are ignored.
inline void wait_for(std::span<pollfd> descriptors, Cycles time) noexcept {
  constexpr Cycles kLongest = 3600'000 * kMillisecond;
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const std::uint64_t ns = std::min(time, kLongest) * kCycleNs;
  const timespec limit{static_cast<time_t>(ns / kSecond), static_cast<long>(ns % kSecond)};
  ::ppoll(descriptors.data(), descriptors.size(), &limit, nullptr);
}

}  // namespace wherry::kv
