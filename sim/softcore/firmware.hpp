// SPDX-License-Identifier: Apache-2.0
// A soft core's firmware beside the DMA engine: nothing, a loop of NOPs, or a memory test (paper 000, section 4.3).
#pragma once

#include <cstdint>
#include <vector>

namespace wherry::sim::softcore {

/// Bytes of a core's own memory, from address 0 on: its firmware and, at the end, its report.
inline constexpr std::uint32_t kLocalBytes = 16'384;
/// Where the memory test counts its rounds, and in the next word the words that it found wrong.
inline constexpr std::uint32_t kReport = kLocalBytes - 64;
/// Where the core sees the card's memory, with its address 0 first. 2 GiB of it.
inline constexpr std::uint32_t kCardBase = 0x8000'0000;

[[nodiscard]] std::vector<std::uint32_t> idle_firmware();
[[nodiscard]] std::vector<std::uint32_t> nop_firmware();
/// Writes a pattern of address and round to every `stride`th byte of a range of the card's memory, reads it back, and
/// starts over. `stride`: 4 to 2,044, a multiple of 4. `address`: in the card's memory.
[[nodiscard]] std::vector<std::uint32_t> memory_test_firmware(std::uint32_t address, std::uint32_t bytes,
                                                              std::int32_t stride);

}  // namespace wherry::sim::softcore
