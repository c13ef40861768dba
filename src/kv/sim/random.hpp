// SPDX-License-Identifier: Apache-2.0
// Random numbers that are equal on every machine: integers only, without the standard library's distributions.
#pragma once

#include <cstdint>

#include "base/random.hpp"

namespace wherry::kv::sim {

/// Chances are given in parts per million.
inline constexpr std::uint32_t kAlways = 1'000'000;

class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) noexcept : stream_(seed) {}

  constexpr std::uint64_t next() noexcept { return stream_(); }
  /// A number from 0 to bound - 1; 0 if bound is 0.
  constexpr std::uint32_t below(std::uint32_t bound) noexcept { return stream_.below(bound); }
  constexpr bool chance(std::uint32_t parts_per_million) noexcept { return below(kAlways) < parts_per_million; }

 private:
  SplitMix64 stream_;
};

}  // namespace wherry::kv::sim
