// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "probe/device/settings.hpp"
#include "probe/path.hpp"

namespace wherry::probe {

/// `pci.config`: reads of a function's configuration space through sysfs, 4, 8 or 64 bytes, each dword a request to the
/// function (64 bytes are 16 of them). Only the standard header is read, and these reads have no side effects. The
/// check compares with an earlier reading of the header, and compares its identity with the kernel's record from the
/// discovery of the function.
std::unique_ptr<Path> pci_config_path(const DeviceSettings& settings);

}  // namespace wherry::probe
