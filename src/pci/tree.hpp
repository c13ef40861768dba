// SPDX-License-Identifier: Apache-2.0
// The PCI functions of this machine, read from sysfs (Documentation/ABI/testing/sysfs-bus-pci). Nothing is changed.
// Without root, the kernel shows only the first 64 bytes of configuration space; all else works.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pci/bus_address.hpp"
#include "pci/config_space.hpp"
#include "wherry/status.hpp"

namespace wherry::pci {

/// A base address register with the kernel's assignment.
struct Bar {
  std::uint64_t address = 0;  ///< of the CPU
  std::uint64_t bytes = 0;    ///< 0: the function has no such register
  bool memory = false;        ///< else I/O ports
  bool wide = false;          ///< 64-bit
  bool prefetchable = false;
  bool assigned = false;     ///< the kernel found room for it
  std::uint64_t on_bus = 0;  ///< its address on the bus; that of the CPU where configuration space does not tell
};

inline constexpr int kNoGroup = -1;

struct PciFunction {
  BusAddress at;
  std::uint16_t vendor = 0, device = 0;
  std::uint32_t class_code = 0;  ///< class, subclass, interface: 0x020000 is an Ethernet controller
  std::array<Bar, 6> bars{};
  ConfigSpace config;
  int group = kNoGroup;             ///< IOMMU group
  std::string driver;               ///< empty: none
  std::string host_bridge;          ///< "pci0000:00"
  std::vector<BusAddress> ports{};  ///< upstream, outermost (the root port) first; without the function itself

  [[nodiscard]] bool is_bridge() const noexcept { return class_code >> 16 == 0x06; }
  [[nodiscard]] std::string text() const { return at.text(); }
};

/// IOVAs of an IOMMU group that must not be mapped.
struct ReservedRange {
  std::uint64_t first = 0, last = 0;
  std::string kind;  ///< "msi", "reserved", "direct"
};

class PciTree {
 public:
  /// `sysfs`: "/sys", or a tree of files like it. kNotFound: there is no PCI bus. Omits a function that disappears
  /// during the call, or whose files cannot be read.
  static Result<PciTree> read(const std::string& sysfs = "/sys");

  [[nodiscard]] const std::vector<PciFunction>& functions() const noexcept { return functions_; }
  [[nodiscard]] const PciFunction* find(BusAddress at) const noexcept;
  /// The functions of this tree that are in an IOMMU group.
  [[nodiscard]] std::vector<const PciFunction*> members(int group) const;
  /// Ranges that must not be mapped, without those that VFIO lets a user map ("direct-relaxable").
  [[nodiscard]] const std::vector<ReservedRange>& reserved(int group) const noexcept;
  /// Whether the kernel has any IOMMU group.
  [[nodiscard]] bool has_iommu() const noexcept { return !reserved_.empty(); }

 private:
  std::vector<PciFunction> functions_;
  std::map<int, std::vector<ReservedRange>> reserved_;
};

/// Parses the file iommu_groups/N/reserved_regions: lines "0xfee00000 0xfeefffff msi". Other lines are skipped.
std::vector<ReservedRange> parse_reserved(const std::string& text);
/// Parses a function's file `resource`: lines "first last flags". The first six are the base address registers.
std::array<Bar, 6> parse_resources(const std::string& text);

}  // namespace wherry::pci
