// SPDX-License-Identifier: Apache-2.0
// Bits of hardware's registers, of which spec/ has the tables.
#pragma once

#include <cstdint>

namespace wherry {

/// Some bits of a register of 32: `count` of them from bit `low` on.
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
