// SPDX-License-Identifier: Apache-2.0
// Random numbers that are the same everywhere: integers only, no distribution of the standard library.
#pragma once

#include <cstdint>

namespace wherry::kv::sim {

/// Chances are in parts per million.
inline constexpr std::uint32_t kAlways = 1'000'000;

/// splitmix64.
class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) noexcept : state_(seed) {}

  constexpr std::uint64_t next() noexcept {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    return z ^ z >> 31;
  }
  /// From 0 to bound - 1; 0 if bound is 0.
  constexpr std::uint32_t below(std::uint32_t bound) noexcept {
    return static_cast<std::uint32_t>((next() >> 32) * bound >> 32);
  }
  constexpr bool chance(std::uint32_t parts_per_million) noexcept { return below(kAlways) < parts_per_million; }

 private:
  std::uint64_t state_;
};

}  // namespace wherry::kv::sim
