// SPDX-License-Identifier: Apache-2.0
#include "probe/histogram.hpp"

#include <algorithm>
#include <cmath>

namespace wherry::probe {

void Histogram::merge(const Histogram& other) noexcept {
  for (std::size_t i = 0; i < kCells; ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
  min_ = std::min(min_, other.min_);
}

std::uint64_t Histogram::percentile(double part) const noexcept {
  if (count_ == 0) return 0;
  const double exact = std::ceil(std::clamp(part, 0.0, 1.0) * static_cast<double>(count_));
  const auto rank = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(exact));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < kCells; ++i) {
    seen += counts_[i];
    if (seen < rank) continue;
    const std::uint64_t middle = first_of(i) + (last_of(i) - first_of(i)) / 2;
    return std::clamp(i == kCells - 1 ? max_ : middle, min_, max_);
  }
  return max_;
}

std::uint64_t Histogram::first_of(std::size_t index) noexcept {
  if (index < kSteps) return index;
  const unsigned shift = static_cast<unsigned>(index / kSteps) - 1;
  return (index % kSteps + kSteps) << shift;
}

std::uint64_t Histogram::last_of(std::size_t index) noexcept {
  if (index < kSteps) return index;
  const unsigned shift = static_cast<unsigned>(index / kSteps) - 1;
  return ((index % kSteps + kSteps + 1) << shift) - 1;
}

}  // namespace wherry::probe
