// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "probe/device/settings.hpp"
#include "probe/path.hpp"

namespace wherry::probe {

/// `verbs.read`, `verbs.write`, `verbs.send`, `verbs.atomic`: RDMA between two queue pairs
/// of one device, both in this process. So every byte goes through the device and back. The
/// host's queue pair posts; in `verbs.*.device` the other one posts, as a card's processor
/// would. Channels are pairs of queue pairs. An atomic is a compare-and-swap of 8 bytes.
std::vector<std::unique_ptr<Path>> verbs_paths(const DeviceSettings& settings);

}  // namespace wherry::probe
