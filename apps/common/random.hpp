// SPDX-License-Identifier: Apache-2.0
// Random numbers as a function of their index: each rank draws its part without drawing the others. The generated data
// depend on the seed, not on the number of ranks.
#pragma once

#include <bit>
#include <cstdint>

namespace wherry::apps {

/// Number `index` of the splitmix64 stream `seed` (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014).
constexpr std::uint64_t splitmix(std::uint64_t seed, std::uint64_t index) noexcept {
  std::uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/// In [0, 1).
constexpr double unit(std::uint64_t random) noexcept { return static_cast<double>(random >> 11) * 0x1p-53; }

/// A number in [0, limit). Precondition: limit <= 2^32; then no value is favoured by more than 2^-32.
constexpr std::uint64_t below(std::uint64_t random, std::uint64_t limit) noexcept {
  return ((random >> 32) * limit) >> 32;
}

/// A hash of two values. Its sum over the elements of a result, in any order, identifies the result.
constexpr std::uint64_t fingerprint(std::uint64_t a, std::uint64_t b) noexcept { return splitmix(splitmix(a, 0), b); }
inline std::uint64_t fingerprint(std::uint64_t a, double b) noexcept {
  return fingerprint(a, std::bit_cast<std::uint64_t>(b));
}

}  // namespace wherry::apps
