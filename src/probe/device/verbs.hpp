// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "probe/device/settings.hpp"
#include "probe/path.hpp"

namespace wherry::probe {

/// `verbs.read`, `verbs.write`, `verbs.send`, `verbs.atomic`: RDMA between two queue pairs of one device, both of this
/// process. So every byte goes through the device and comes back. The host's queue pair posts. In `verbs.*.device` the
/// other one does, as a card's processor would, towards the host's memory. Channels are pairs of queue pairs. An atomic
/// is a compare-and-swap of 8 bytes.
std::vector<std::unique_ptr<Path>> verbs_paths(const DeviceSettings& settings);

}  // namespace wherry::probe
