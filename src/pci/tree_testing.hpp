// SPDX-License-Identifier: Apache-2.0
// For tests: trees of files like /sys, and configuration spaces built byte by byte from the PCI Express specification.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/temporary_directory.hpp"
#include "pci/bus_address.hpp"

namespace wherry::pci::testing_support {

inline BusAddress at(std::string_view text) {
  auto parsed = parse_bus_address(text);
  EXPECT_TRUE(parsed) << text;
  return parsed ? *parsed : BusAddress{};
}

/// Builds a configuration space, in the form of a datasheet's table.
class ConfigBytes {
 public:
  explicit ConfigBytes(std::size_t size = 4096) : bytes_(size, '\0') {}
  ConfigBytes& u8(std::size_t offset, std::uint32_t value) { return put(offset, value, 1); }
  ConfigBytes& u16(std::size_t offset, std::uint32_t value) { return put(offset, value, 2); }
  ConfigBytes& u32(std::size_t offset, std::uint32_t value) { return put(offset, value, 4); }
  /// Adds a PCI Express capability at 0x40, the only one of the classic list. `type`: Device/Port Type.
  ConfigBytes& express(std::uint32_t type, std::uint32_t device_control = 0) {
    return u16(0x06, 0x10).u8(0x34, 0x40).u8(0x40, 0x10).u8(0x41, 0).u16(0x42, 2 | type << 4).u16(0x48, device_control);
  }
  /// Adds AER at 0x100 and ACS at 0x148, as in switches.
  ConfigBytes& acs(std::uint32_t capability, std::uint32_t control) {
    u32(0x100, 0x0001 | 2U << 16 | 0x148U << 20);
    return u32(0x148, 0x000D | 1U << 16).u16(0x14C, capability).u16(0x14E, control);
  }
  /// Makes it a bridge: header type 1 and the bridge's windows, in units of 1 MiB, both ends included.
  ConfigBytes& bridge(std::uint64_t memory_first, std::uint64_t memory_last, std::uint64_t wide_first,
                      std::uint64_t wide_last) {
    u8(0x0E, 1);
    u16(0x20, static_cast<std::uint32_t>(memory_first >> 16 & 0xFFF0))
        .u16(0x22, static_cast<std::uint32_t>(memory_last >> 16 & 0xFFF0));
    u16(0x24, static_cast<std::uint32_t>(wide_first >> 16 & 0xFFF0) | 1)
        .u16(0x26, static_cast<std::uint32_t>(wide_last >> 16 & 0xFFF0) | 1);
    return u32(0x28, static_cast<std::uint32_t>(wide_first >> 32))
        .u32(0x2C, static_cast<std::uint32_t>(wide_last >> 32));
  }
  /// Adds a 64-bit memory BAR.
  ConfigBytes& wide_bar(unsigned index, std::uint64_t address, bool prefetchable) {
    return u32(0x10 + 4 * index, static_cast<std::uint32_t>(address) | 4 | (prefetchable ? 8 : 0))
        .u32(0x14 + 4 * index, static_cast<std::uint32_t>(address >> 32));
  }
  [[nodiscard]] const std::string& text() const { return bytes_; }
  [[nodiscard]] std::vector<std::byte> bytes(std::size_t most = 4096) const {
    const auto* first = reinterpret_cast<const std::byte*>(bytes_.data());
    return {first, first + std::min(most, bytes_.size())};
  }

 private:
  ConfigBytes& put(std::size_t offset, std::uint32_t value, unsigned count) {
    for (unsigned i = 0; i < count; ++i) bytes_.at(offset + i) = static_cast<char>(value >> (8 * i) & 0xFF);
    return *this;
  }
  std::string bytes_;
};

struct FunctionFiles {
  std::string path;  ///< below devices: "pci0000:00/0000:00:01.0/0000:01:00.0"
  std::uint16_t vendor = 0, device = 0;
  std::uint32_t class_code = 0;
  std::string resource{};  ///< lines of the file
  ConfigBytes config{};
  int group = -1;
  std::string driver{};
};

class SysfsTree {
 public:
  SysfsTree() {
    auto made = TemporaryDirectory::create("sysfs");
    EXPECT_TRUE(made);
    if (made) directory_ = *std::move(made);
    std::filesystem::create_directories(root() / "bus/pci/devices");
    std::filesystem::create_directories(root() / "bus/pci/drivers");
    write("bus/pci/drivers_probe", "");
  }
  [[nodiscard]] std::filesystem::path root() const { return directory_.path(); }
  [[nodiscard]] std::string text() const { return root().string(); }

  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((root() / file).parent_path());
    std::ofstream(root() / file, std::ios::binary) << text;
  }
  void add(const FunctionFiles& function) {
    const std::string name = std::filesystem::path(function.path).filename().string(),
                      place = "devices/" + function.path;
    write(place + "/vendor", hexadecimal(function.vendor, 4));
    write(place + "/device", hexadecimal(function.device, 4));
    write(place + "/class", hexadecimal(function.class_code, 6));
    write(place + "/resource", function.resource);
    write(place + "/config", function.config.text());
    write(place + "/driver_override", "(null)\n");
    link("bus/pci/devices/" + name, place);
    if (function.group >= 0) {
      const std::string group = "kernel/iommu_groups/" + std::to_string(function.group);
      link(group + "/devices/" + name, place);
      link(place + "/iommu_group", group);
    }
    if (!function.driver.empty()) bind(name, function.driver);
  }
  void reserve(int group, const std::string& lines) const {
    write("kernel/iommu_groups/" + std::to_string(group) + "/reserved_regions", lines);
  }
  /// Adds a kernel driver to which no device is bound.
  void add_driver(const std::string& driver) const {
    write("bus/pci/drivers/" + driver + "/unbind", "");
    write("bus/pci/drivers/" + driver + "/bind", "");
  }
  void bind(const std::string& name, const std::string& driver) const {
    add_driver(driver);
    link("bus/pci/devices/" + name + "/driver", "bus/pci/drivers/" + driver);
  }
  void unbind(const std::string& name) const { std::filesystem::remove(root() / "bus/pci/devices" / name / "driver"); }

 private:
  static std::string hexadecimal(std::uint32_t value, int digits) {
    std::string text = "0x";
    for (int i = digits; i-- > 0;) text += "0123456789abcdef"[value >> (4 * i) & 0xF];
    return text + "\n";
  }
  void link(const std::string& from, const std::string& to) const {
    std::filesystem::create_directories((root() / from).parent_path());
    std::filesystem::remove(root() / from);
    std::filesystem::create_directory_symlink(root() / to, root() / from);
  }
  TemporaryDirectory directory_;
};

/// A line "0x... 0x... 0x...", with flags as the kernel prints them (include/linux/ioport.h).
inline std::string resource_line(std::uint64_t first, std::uint64_t bytes, std::uint64_t flags) {
  std::ostringstream line;
  line << std::hex << "0x" << first << " 0x" << (bytes == 0 ? 0 : first + bytes - 1) << " 0x" << flags << "\n";
  return line.str();
}
inline constexpr std::uint64_t kMemory32 = 0x40200, kMemory64Prefetch = 0x14220C, kMemory64 = 0x140204, kNoResource = 0;
inline const std::string kEmptyLine = "0x0000000000000000 0x0000000000000000 0x0000000000000000\n";

// A machine: root port 00:01.0, a switch behind it (01:00.0, downstream ports 02:00.0 and 02:01.0), an 82599 at 03:00.0
// and a card at 04:00.0. A second root port 00:02.0 is free for other devices.
inline constexpr std::uint64_t kCardWindow = 0x38'0000'0000, kNicRegisters = 0xE000'0000;

struct Machine {
  SysfsTree sysfs;
  std::uint32_t nic_acs = 0, card_acs = 0;  ///< control registers of the two downstream ports
  bool has_acs = true;
  std::string nic_path = "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:03:00.0";
  std::string card_path = "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:04:00.0";
  std::size_t config_bytes = 4096;  ///< 64: as a user who is not root sees it
  std::uint64_t card_window = kCardWindow, card_bytes = 16ULL << 20;
  std::uint64_t card_flags = kMemory64Prefetch;
  std::uint64_t engine_bytes = 0;  ///< of the card's BAR 4, which its DMA engine has; 0: no such BAR
  std::uint64_t window_first = 0x38'0000'0000, window_last = 0x38'0FFF'FFFF;  ///< prefetchable, of all ports
  int nic_group = 10, card_group = 11;
  std::string nic_driver = "ixgbe";
  std::uint16_t nic_device = 0x10FB;

  void build() {
    const auto port = [&](const std::string& path, std::uint32_t type, std::uint32_t acs, bool with_acs) {
      ConfigBytes config(config_bytes);
      config.bridge(0xE000'0000, 0xE0FF'FFFF, window_first, window_last);
      if (config_bytes == 4096) {
        config.express(type);
        if (with_acs) config.acs(0x5F, acs);
      }
      sysfs.add({.path = path,
                 .vendor = 0x10B5,
                 .device = 0x8747,
                 .class_code = 0x060400,
                 .config = config,
                 .driver = "pcieport"});
    };
    port("pci0000:00/0000:00:01.0", 4, 0x1D, true);
    port("pci0000:00/0000:00:02.0", 4, 0x1D, true);
    port("pci0000:00/0000:00:01.0/0000:01:00.0", 5, 0, false);
    port("pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0", 6, nic_acs, has_acs);
    port("pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0", 6, card_acs, has_acs);
    ConfigBytes nic(config_bytes), card(config_bytes);
    nic.u32(0x10, static_cast<std::uint32_t>(kNicRegisters));
    card.u32(0x10, 0xE010'0000).wide_bar(2, card_window, true);
    std::string engine;
    if (engine_bytes != 0) {
      card.wide_bar(4, card_window + card_bytes, true);
      engine = kEmptyLine + resource_line(card_window + card_bytes, engine_bytes, kMemory64Prefetch);
    }
    if (config_bytes == 4096) {
      nic.express(0, 0x2810);
      card.express(0, 0x2810);
    }
    sysfs.add({.path = nic_path,
               .vendor = 0x8086,
               .device = nic_device,
               .class_code = 0x020000,
               .resource = resource_line(kNicRegisters, 0x8'0000, kMemory32),
               .config = nic,
               .group = nic_group,
               .driver = nic_driver});
    sysfs.add({.path = card_path,
               .vendor = 0x10EE,
               .device = 0x903F,
               .class_code = 0x058000,
               .resource = resource_line(0xE010'0000, 0x1'0000, kMemory32) + kEmptyLine +
                           resource_line(card_window, card_bytes, card_flags) + engine,
               .config = card,
               .group = card_group});
    for (const int group : {nic_group, card_group})
      if (group >= 0) sysfs.reserve(group, "0x00000000fee00000 0x00000000feefffff msi\n");
  }
};

}  // namespace wherry::pci::testing_support
