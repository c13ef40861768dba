// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace wherry::session {

/// A histogram of times, as in Prometheus. The buckets are fixed, so histograms can be summed over agents and over
/// time. One thread at a time.
class TimeHistogram {
 public:
  /// Upper bounds of the buckets in nanoseconds, inclusive: 1, 2, 5, 10 us and so on up to 10 s. The last bucket has
  /// all longer times.
  static constexpr std::array<std::uint64_t, 22> kBoundsNs{
      1'000,       2'000,       5'000,         10'000,        20'000,        50'000,        100'000,    200'000,
      500'000,     1'000'000,   2'000'000,     5'000'000,     10'000'000,    20'000'000,    50'000'000, 100'000'000,
      200'000'000, 500'000'000, 1'000'000'000, 2'000'000'000, 5'000'000'000, 10'000'000'000};

  void add(std::uint64_t ns) noexcept {
    const auto* bound = std::lower_bound(kBoundsNs.begin(), kBoundsNs.end(), ns);
    ++counts_[static_cast<std::size_t>(bound - kBoundsNs.begin())];
    sum_ns_ += ns;
  }
  /// The number of times in bucket `i` alone, without earlier buckets.
  [[nodiscard]] std::uint64_t count(std::size_t i) const noexcept { return counts_[i]; }
  [[nodiscard]] std::uint64_t sum_ns() const noexcept { return sum_ns_; }

 private:
  std::array<std::uint64_t, kBoundsNs.size() + 1> counts_{};
  std::uint64_t sum_ns_ = 0;
};

}  // namespace wherry::session
