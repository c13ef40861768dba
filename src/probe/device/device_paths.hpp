// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "probe/device/settings.hpp"
#include "probe/path.hpp"

namespace wherry::probe {

/// The paths that need devices, in the order of docs/guide/probe-devices.md. One that cannot run here says why in
/// PathInfo::absent. Looks at files and libraries, and opens no device.
std::vector<std::unique_ptr<Path>> device_paths(const DeviceSettings& settings);
/// By the environment's WHERRY_PROBE_*.
std::vector<std::unique_ptr<Path>> device_paths();

}  // namespace wherry::probe
