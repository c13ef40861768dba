// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "probe/device/settings.hpp"
#include "probe/path.hpp"

namespace wherry::probe {

/// The paths that need devices, in the order of docs/guide/probe-devices.md. PathInfo::absent explains
/// why a path cannot run here. The function looks at files and libraries, but opens no device.
std::vector<std::unique_ptr<Path>> device_paths(const DeviceSettings& settings);
/// Like the overload above, with settings from the environment (WHERRY_PROBE_*).
std::vector<std::unique_ptr<Path>> device_paths();

}  // namespace wherry::probe
