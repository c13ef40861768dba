// SPDX-License-Identifier: Apache-2.0
// How an Intel IOMMU translates an address that a device writes to, by the tables that the guest's kernel has put into
// its memory. Source: Intel Virtualization Technology for Directed I/O, Architecture Specification, 3.4.2 and 3.4.3
// (legacy mode), 9.1 (root entry), 9.3 (context entry), 9.8 (second-stage paging entries).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace wherry::sim {

// 11.4: the registers are at the address in ACPI's DMAR table, as in QEMU's intel-iommu.
inline constexpr std::uint64_t kVtdRegisters = 0xFED9'0000;
inline constexpr std::uint32_t kVtdGlobalStatus = 0x1C, kVtdRootTable = 0x20;
inline constexpr std::uint32_t kVtdTranslates = 1U << 31;  ///< of the global status

/// Bus, device and function, in the form that a request carries.
[[nodiscard]] constexpr std::uint16_t source_id(unsigned bus, unsigned device, unsigned function) noexcept {
  return static_cast<std::uint16_t>(bus << 8 | device << 3 | function);
}

class VtdTables {
 public:
  /// `memory`: the machine's memory, from address 0 on; it outlives this. `root`: the root table register's content.
  VtdTables(std::span<const std::byte> memory, std::uint64_t root) : memory_(memory), root_(root) {}

  /// Where a write goes. Nothing: a fault, also if tables are outside `memory`.
  [[nodiscard]] std::optional<std::uint64_t> translate_write(std::uint16_t source, std::uint64_t address) const;

 private:
  [[nodiscard]] std::uint64_t word(std::uint64_t address) const;

  std::span<const std::byte> memory_;
  std::uint64_t root_;
};

}  // namespace wherry::sim
