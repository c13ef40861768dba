// SPDX-License-Identifier: Apache-2.0
// Reproducible random numbers: splitmix64 (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number
// generators", OOPSLA 2014). It uses integers only, so all machines draw the same numbers. Not for secrets.
#pragma once

#include <cstdint>

namespace wherry {

/// The state increases by this step: 2^64 divided by the golden ratio.
inline constexpr std::uint64_t kGoldenGamma = 0x9e3779b97f4a7c15U;

/// The output function: a bijection that mixes all 64 bits of a state (variant 13 of Stafford's mixers).
constexpr std::uint64_t mix64(std::uint64_t state) noexcept {
  state = (state ^ state >> 30) * 0xbf58476d1ce4e5b9U;
  state = (state ^ state >> 27) * 0x94d049bb133111ebU;
  return state ^ state >> 31;
}

/// The first number of the stream `seed`. Applied to a counter, it is a hash.
constexpr std::uint64_t splitmix64(std::uint64_t seed) noexcept { return mix64(seed + kGoldenGamma); }

/// Number `index` of the stream `seed`, without computing the numbers before it.
constexpr std::uint64_t splitmix64(std::uint64_t seed, std::uint64_t index) noexcept {
  return mix64(seed + (index + 1) * kGoldenGamma);
}

/// The stream `seed`, one number per call. Meets UniformRandomBitGenerator.
class SplitMix64 {
 public:
  using result_type = std::uint64_t;
  explicit constexpr SplitMix64(std::uint64_t seed) noexcept : state_(seed) {}
  static constexpr result_type min() noexcept { return 0; }
  static constexpr result_type max() noexcept { return ~result_type{0}; }
  constexpr result_type operator()() noexcept { return mix64(state_ += kGoldenGamma); }
  /// A number from 0 to bound - 1; 0 if bound is 0. The bias of each value is at most 2^-32.
  constexpr std::uint32_t below(std::uint32_t bound) noexcept {
    return static_cast<std::uint32_t>(((*this)() >> 32) * bound >> 32);
  }

 private:
  std::uint64_t state_;
};

}  // namespace wherry
