// SPDX-License-Identifier: Apache-2.0
// A histogram of nanoseconds with 64 steps in each power of two: percentiles are exact to 1.6 %, and adding a value
// allocates nothing.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace wherry::kv::bench {

class Latencies {
 public:
  void add(std::uint64_t ns) noexcept {
    ++counts_[index_of(ns)];
    ++count_;
    max_ = std::max(max_, ns);
    sum_ += ns;
  }
  void merge(const Latencies& other) noexcept {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    count_ += other.count_;
    max_ = std::max(max_, other.max_);
    sum_ += other.sum_;
  }
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t max() const noexcept { return max_; }
  [[nodiscard]] double mean() const noexcept {
    return count_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(count_);
  }
  /// The percentile, as the upper end of its step; `part` is from 0 to 1.
  [[nodiscard]] std::uint64_t percentile(double part) const noexcept {
    const auto wanted = static_cast<std::uint64_t>(part * static_cast<double>(count_));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen > wanted) return std::min(end_of(i), max_);
    }
    return max_;
  }

 private:
  static constexpr unsigned kBits = 6;
  static constexpr std::uint64_t kSteps = std::uint64_t{1} << kBits;
  static constexpr unsigned kPowers = 40;  // up to 2^45 ns

  static std::size_t index_of(std::uint64_t ns) noexcept {
    if (ns < kSteps) return static_cast<std::size_t>(ns);
    const unsigned shift = static_cast<unsigned>(std::bit_width(ns)) - 1 - kBits;
    if (shift >= kPowers - 1) return kPowers * kSteps - 1;
    return static_cast<std::size_t>((shift + 1) * kSteps + (ns >> shift) - kSteps);
  }
  static std::uint64_t end_of(std::size_t index) noexcept {
    if (index < kSteps) return index;
    const unsigned shift = static_cast<unsigned>(index / kSteps) - 1;
    return ((index % kSteps + kSteps + 1) << shift) - 1;
  }

  std::array<std::uint64_t, kPowers * kSteps> counts_{};
  std::uint64_t count_ = 0, max_ = 0, sum_ = 0;
};

}  // namespace wherry::kv::bench
