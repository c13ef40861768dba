// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bit fields of hardware registers. spec/ has the tables of registers.
#include <cstdint>

namespace wherry {

/// A field of `count` bits in a 32-bit register, starting at bit `low`.
struct RegisterBits {
  std::uint32_t low;
  std::uint32_t count;
  [[nodiscard]] constexpr std::uint32_t mask() const noexcept {
    return static_cast<std::uint32_t>(((std::uint64_t{1} << count) - 1) << low);
  }
  [[nodiscard]] constexpr std::uint32_t get(std::uint32_t word) const noexcept { return (word & mask()) >> low; }
  [[nodiscard]] constexpr std::uint32_t set(std::uint32_t word, std::uint32_t value) const noexcept {
    return (word & ~mask()) | (value << low & mask());
  }
};

}  // namespace wherry
