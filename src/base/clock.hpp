// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>

namespace wherry {

/// CLOCK_MONOTONIC in nanoseconds (vDSO, about 20 ns).
inline std::uint64_t now_ns() noexcept {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(t.tv_nsec);
}

/// CLOCK_BOOTTIME in nanoseconds. It continues while the machine sleeps. Leases use it, because they expire on other
/// machines while this one sleeps.
inline std::uint64_t boot_ns() noexcept {
  timespec t{};
  clock_gettime(CLOCK_BOOTTIME, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(t.tv_nsec);
}

/// CPU time of the calling thread in nanoseconds (a system call).
inline std::uint64_t thread_cpu_ns() noexcept {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(t.tv_nsec);
}

/// A point in time after which waiting ends.
class Deadline {
 public:
  explicit Deadline(std::chrono::nanoseconds from_now) noexcept
      : at_(from_now.count() < 0 || from_now > std::chrono::hours(24 * 365)
                ? ~std::uint64_t{0}
                : now_ns() + static_cast<std::uint64_t>(from_now.count())) {}
  [[nodiscard]] bool passed() const noexcept { return now_ns() >= at_; }
  /// Milliseconds left, rounded up, at least 0 and at most `cap`: for poll(2).
  [[nodiscard]] int left_ms(int cap) const noexcept {
    const std::uint64_t now = now_ns();
    if (now >= at_) return 0;
    const std::uint64_t ms = (at_ - now + 999'999) / 1'000'000;
    return ms > static_cast<std::uint64_t>(cap) ? cap : static_cast<int>(ms);
  }

 private:
  std::uint64_t at_;
};

}  // namespace wherry
