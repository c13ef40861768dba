// SPDX-License-Identifier: Apache-2.0
// Waiting for descriptors, with times in cycles. The time stops while the machine sleeps, unlike lease_clock().
#pragma once

#include <poll.h>

#include <algorithm>
#include <ctime>
#include <span>

#include "kv/message.hpp"

namespace wherry::kv {

/// Waits until a descriptor is ready, or for `time`, with nanosecond resolution (poll(2) has only milliseconds). A
/// signal also ends the wait. Descriptors below 0 are ignored.
inline void wait_for(std::span<pollfd> descriptors, Cycles time) noexcept {
  constexpr Cycles kLongest = 3600'000 * kMillisecond;
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const std::uint64_t ns = std::min(time, kLongest) * kCycleNs;
  const timespec limit{static_cast<time_t>(ns / kSecond), static_cast<long>(ns % kSecond)};
  ::ppoll(descriptors.data(), descriptors.size(), &limit, nullptr);
}

}  // namespace wherry::kv
