// SPDX-License-Identifier: Apache-2.0
// A mergeable log-linear histogram of integers (picoseconds in the runner). Each power
// of two has 64 steps, so a step is at most 1/64 = 1.6 % of its value wide. This is the
// layout of G. Tene's HdrHistogram, in new code. Adding a value allocates no memory.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace wherry::probe {

class Histogram {
 public:
  static constexpr unsigned kBits = 6;
  static constexpr std::uint64_t kSteps = std::uint64_t{1} << kBits;
  static constexpr unsigned kPowers = 40;  // up to 2^45, 35 s of picoseconds; what is more counts as the last step
  static constexpr std::size_t kCells = kPowers * kSteps;

  void add(std::uint64_t value, std::uint64_t times = 1) noexcept {
    counts_[index_of(value)] += times;
    count_ += times;
    if (value > max_) max_ = value;
    if (value < min_) min_ = value;
  }
  void merge(const Histogram& other) noexcept;
  void reset() noexcept { *this = Histogram(); }

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  /// Exact; 0 if the histogram is empty.
  [[nodiscard]] std::uint64_t max() const noexcept { return max_; }
  [[nodiscard]] std::uint64_t min() const noexcept { return count_ == 0 ? 0 : min_; }
  /// The smallest value that at least `part` (0 to 1) of all do not exceed (nearest rank), as the middle
  /// of its step within min() and max(). Its error is at most 0.8 %. 0 if the histogram is empty.
  [[nodiscard]] std::uint64_t percentile(double part) const noexcept;

  [[nodiscard]] static std::size_t index_of(std::uint64_t value) noexcept {
    if (value < kSteps) return static_cast<std::size_t>(value);
    const unsigned shift = static_cast<unsigned>(std::bit_width(value)) - 1 - kBits;
    if (shift >= kPowers - 1) return kCells - 1;
    return static_cast<std::size_t>((shift + 1) * kSteps + (value >> shift) - kSteps);
  }
  /// The least and the greatest value in a step.
  [[nodiscard]] static std::uint64_t first_of(std::size_t index) noexcept;
  [[nodiscard]] static std::uint64_t last_of(std::size_t index) noexcept;

 private:
  std::array<std::uint64_t, kCells> counts_{};
  std::uint64_t count_ = 0, max_ = 0, min_ = ~std::uint64_t{0};
};

}  // namespace wherry::probe
