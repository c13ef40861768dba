// SPDX-License-Identifier: Apache-2.0
// Takes a PCI function from its kernel driver, and gives it back. It uses driver_override
// (Documentation/ABI/testing/sysfs-bus-pci), so no other function with the same ID is affected.
#pragma once

#include <string>

#include "pci/bus_address.hpp"
#include "pci/kernel.hpp"
#include "wherry/status.hpp"

namespace wherry::pci {

/// The data that are needed to give a function back. A file keeps them in case this process is killed (record.hpp).
struct Lent {
  BusAddress at{};
  std::string driver;  ///< that had it; empty: none, "vfio-pci": it was bound so before, and stays so
  friend bool operator==(const Lent&, const Lent&) = default;
};

class Binding {
 public:
  /// `sysfs`: "/sys".
  Binding(Kernel& kernel, std::string sysfs) : kernel_(&kernel), sysfs_(std::move(sysfs)) {}

  [[nodiscard]] std::string driver_of(BusAddress at) const;
  /// The record that `take` would need to give the function back later.
  [[nodiscard]] Lent describe(BusAddress at) const { return {.at = at, .driver = driver_of(at)}; }
  /// Binds to vfio-pci. After a failure the function is as before. kNotFound: the kernel has no vfio-pci;
  /// kPermissionDenied: not root.
  Status take(const Lent& lent) const;
  /// The driver gets it back, also if `take` was interrupted, and more than once. kUnavailable: another driver has it
  /// now, or none took it. The message names the command for the rest.
  Status give_back(const Lent& lent) const;

 private:
  [[nodiscard]] std::string file(BusAddress at, const std::string& name) const;
  Status write(const std::string& path, const std::string& text) const;

  Kernel* kernel_;
  std::string sysfs_;
};

}  // namespace wherry::pci
