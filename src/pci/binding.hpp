// SPDX-License-Identifier: Apache-2.0
// Takes a PCI function from its kernel driver, and gives it back. The class uses driver_override
// (Documentation/ABI/testing/sysfs-bus-pci), so no other function with the same ID is affected.
#pragma once

#include <string>

#include "pci/bus_address.hpp"
#include "pci/kernel.hpp"
#include "wherry/status.hpp"

namespace wherry::pci {

/// The data needed to give a function back. A file keeps them in case this process is killed (record.hpp).
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
  /// Returns the record that is needed to give the function back after `take`.
  [[nodiscard]] Lent describe(BusAddress at) const { return {.at = at, .driver = driver_of(at)}; }
  /// Binds the function to vfio-pci; after a failure it is as before. kNotFound: the kernel has no vfio-pci;
  /// kPermissionDenied: the user is not root.
  Status take(const Lent& lent) const;
  /// Returns the function to its driver, even if `take` was interrupted; may be repeated. kUnavailable: another driver
  /// has the function, or none took it. The message names the command for the remaining step.
  Status give_back(const Lent& lent) const;

 private:
  [[nodiscard]] std::string file(BusAddress at, const std::string& name) const;
  Status write(const std::string& path, const std::string& text) const;

  Kernel* kernel_;
  std::string sysfs_;
};

}  // namespace wherry::pci
