// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "probe/device/settings.hpp"
#include "probe/path.hpp"

namespace wherry::probe {

/// `pci.config`: reads of 4, 8 or 64 bytes of a function's configuration space through
/// sysfs. Each dword is one request to the function, so 64 bytes are 16 requests. Only
/// the standard header is read, without side effects. verify() compares with an earlier
/// reading, and the identity with the kernel's record from the function's discovery.
std::unique_ptr<Path> pci_config_path(const DeviceSettings& settings);

}  // namespace wherry::probe
