// SPDX-License-Identifier: Apache-2.0
// Finds PCI functions by address or identity, one file at a time, in sysfs (Documentation/ABI/testing/sysfs-bus-pci).
// tree.hpp reads the whole machine. Nothing is changed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace wherry::pci {

struct PciDevice {
  std::string address;  ///< "0000:04:00.0"
  std::string folder;   ///< of its files
  std::uint16_t vendor = 0, device = 0;
};

/// All functions, ordered by address. Empty: there is no PCI bus, or it is not visible.
std::vector<PciDevice> pci_devices(const std::string& sysfs);
std::optional<PciDevice> pci_device(const std::string& sysfs, const std::string& address);
/// The first function with this vendor and device.
std::optional<PciDevice> pci_device(const std::string& sysfs, std::uint16_t vendor, std::uint16_t device);
/// The number in a file such as `vendor` ("0x10ee").
std::optional<std::uint32_t> read_number(const std::string& path);
/// Bits of the command register (pci_regs.h, PCI_COMMAND_*). kCommandMemory: the function answers accesses to its
/// memory. kCommandMaster: the function may access other memory.
inline constexpr std::uint16_t kCommandMemory = 2, kCommandMaster = 4;
/// The command register. No value: it cannot be read.
std::optional<std::uint16_t> command_of(const std::string& folder);

}  // namespace wherry::pci
