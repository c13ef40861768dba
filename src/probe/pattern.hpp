// SPDX-License-Identifier: Apache-2.0
// The contents of transferred data: 64-bit words that depend on a seed and their offset.
// So verification detects a byte that is stale, shifted, missing or of another round.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/random.hpp"

namespace wherry::probe {

/// Byte `offset` of the pattern of a seed.
[[nodiscard]] constexpr std::byte pattern_byte(std::uint64_t seed, std::uint64_t offset) noexcept {
  return static_cast<std::byte>(splitmix64(seed, offset / 8) >> (offset % 8 * 8) & 0xff);
}

/// Writes the pattern, starting at its byte `offset`.
void fill_pattern(std::span<std::byte> to, std::uint64_t seed, std::uint64_t offset = 0) noexcept;
/// Writes the complement of the pattern. A byte that was not overwritten then differs from the pattern in every bit.
void fill_poison(std::span<std::byte> to, std::uint64_t seed, std::uint64_t offset = 0) noexcept;
/// The offset of the first byte that differs from the pattern; no value if all bytes are equal.
[[nodiscard]] std::optional<std::size_t> find_wrong(std::span<const std::byte> in, std::uint64_t seed,
                                                    std::uint64_t offset = 0) noexcept;
/// The offset of the first byte that differs from fill_poison()'s.
[[nodiscard]] std::optional<std::size_t> find_touched(std::span<const std::byte> in, std::uint64_t seed,
                                                      std::uint64_t offset = 0) noexcept;

/// The bytes around a destination, which must not change.
inline constexpr std::byte kGuard{0xdb};

}  // namespace wherry::probe
