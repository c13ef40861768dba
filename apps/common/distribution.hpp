// SPDX-License-Identifier: Apache-2.0
// Maps elements of an array, or rows of a matrix, to the rank that owns them and to their local index there.
#pragma once

#include <algorithm>
#include <cstdint>

#include "wherry/route_message.hpp"

namespace wherry::apps {

using route::Rank;

/// Division of 32-bit numbers by a constant divisor, as a multiplication (D. Lemire, O. Kaser, N. Kurz, "Faster
/// remainder by direct computation", Software: Practice and Experience 49, 2019).
class Divider {
 public:
  explicit constexpr Divider(std::uint64_t by) noexcept : reciprocal_(~std::uint64_t{0} / by + 1) {}
  /// Precondition: n and the divisor are less than 2^32.
  [[nodiscard]] constexpr std::uint64_t quotient(std::uint64_t n) const noexcept {
    if (reciprocal_ == 0) return n;  // the divisor is one, whose reciprocal, 2^64, does not fit
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((Wide{reciprocal_} * n) >> 64);
  }

 private:
  std::uint64_t reciprocal_;
};

/// Distributes elements 0 to size - 1 over the ranks. Cyclic: element i goes to rank i modulo ranks, which spreads
/// neighbouring elements. Block: each rank has one contiguous piece, so neighbours stay together.
class Distribution {
 public:
  enum class Kind : std::uint8_t { kCyclic, kBlock };
  struct Home {
    Rank rank;
    std::uint32_t local;
  };

  /// Precondition: size < 2^32.
  Distribution(Kind kind, std::uint64_t size, Rank ranks) noexcept
      : kind_(kind),
        size_(size),
        ranks_(ranks),
        step_(kind == Kind::kCyclic ? ranks : std::max<std::uint64_t>(1, (size + ranks - 1) / ranks)),
        divider_(step_) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] Home home(std::uint64_t element) const noexcept {
    const std::uint64_t quotient = divider_.quotient(element), rest = element - quotient * step_;
    if (kind_ == Kind::kCyclic) return {static_cast<Rank>(rest), static_cast<std::uint32_t>(quotient)};
    return {static_cast<Rank>(quotient), static_cast<std::uint32_t>(rest)};
  }
  [[nodiscard]] std::uint64_t element(Rank rank, std::uint64_t local) const noexcept {
    return kind_ == Kind::kCyclic ? local * ranks_ + rank : rank * step_ + local;
  }
  /// How many elements the rank owns.
  [[nodiscard]] std::uint64_t count(Rank rank) const noexcept {
    if (kind_ == Kind::kCyclic) return size_ / ranks_ + (rank < size_ % ranks_ ? 1 : 0);
    return std::min(step_, size_ - std::min(size_, rank * step_));
  }

 private:
  Kind kind_;
  std::uint64_t size_;
  Rank ranks_;
  std::uint64_t step_;
  Divider divider_;
};

/// A rank's share of `total` pieces of work: `first` up to, but not including, `last`.
struct Share {
  std::uint64_t first, last;
  static constexpr Share of(std::uint64_t total, Rank rank, Rank ranks) noexcept {
    const std::uint64_t each = total / ranks, over = total % ranks;
    const std::uint64_t first = each * rank + std::min<std::uint64_t>(rank, over);
    return {first, first + each + (rank < over ? 1 : 0)};
  }
};

}  // namespace wherry::apps
