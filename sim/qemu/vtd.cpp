// SPDX-License-Identifier: Apache-2.0
#include "sim/qemu/vtd.hpp"

#include <cstring>

namespace wherry::sim {
namespace {

constexpr std::uint64_t kPresent = 1U << 0;
constexpr std::uint64_t kWrite = 1U << 1;
constexpr std::uint64_t kLarge = 1U << 7;                // PS of a paging entry
constexpr std::uint64_t kTable = 0x000F'FFFF'FFFF'F000;  // bits 51:12
constexpr unsigned kPageBits = 12, kLevelBits = 9;

}  // namespace

/// A word outside the memory reads as 0, which means not present.
std::uint64_t VtdTables::word(std::uint64_t address) const {
  std::uint64_t value = 0;
  if (address <= memory_.size() && memory_.size() - address >= sizeof value)
    std::memcpy(&value, memory_.data() + address, sizeof value);
  return value;
}

std::optional<std::uint64_t> VtdTables::translate_write(std::uint16_t source, std::uint64_t address) const {
  const std::uint64_t root = word((root_ & kTable) + std::uint64_t{16} * (source >> 8));
  if ((root & kPresent) == 0) return std::nullopt;
  const std::uint64_t context_at = (root & kTable) + std::uint64_t{16} * (source & 0xFF);
  const std::uint64_t context = word(context_at);
  if ((context & kPresent) == 0) return std::nullopt;
  const auto type = static_cast<unsigned>(context >> 2 & 3);
  if (type == 2) return address;  // pass-through
  if (type != 0) return std::nullopt;
  // Address width: 1 is 39 bits in three levels, 2 is 48 in four, 3 is 57 in five.
  const auto width = static_cast<unsigned>(word(context_at + 8) & 7);
  if (width < 1 || width > 3) return std::nullopt;
  unsigned level = width + 2;
  if (address >> (kPageBits + kLevelBits * level) != 0) return std::nullopt;
  for (std::uint64_t table = context & kTable;; --level) {
    const unsigned shift = kPageBits + kLevelBits * (level - 1);
    const std::uint64_t entry = word(table + 8 * (address >> shift & ((1U << kLevelBits) - 1)));
    if ((entry & kWrite) == 0) return std::nullopt;
    if (level == 1 || ((entry & kLarge) != 0 && level <= 3)) {
      const std::uint64_t offset = (std::uint64_t{1} << shift) - 1;
      return (entry & kTable & ~offset) | (address & offset);
    }
    table = entry & kTable;
  }
}

}  // namespace wherry::sim
