// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "probe/device/settings.hpp"
#include "probe/path.hpp"

namespace wherry::probe {

/// Returns the bus address at which a device reaches a byte of this process, or no value if it is unknown.
using BusAddressOf = std::function<std::optional<std::uint64_t>(const std::byte*)>;

/// Uses /proc/self/pagemap. Only root can read physical addresses
/// there, and a device can use them only without an IOMMU.
std::optional<std::uint64_t> physical_address(const std::byte* at);

/// `edu.h2c`, `edu.c2h`: DMA by QEMU's educational device (docs/specs/edu.txt of QEMU), which takes 100 ms for each
/// transfer of at most 2 KiB. It shows that a device reaches pinned memory, but not how fast.
std::vector<std::unique_ptr<Path>> edu_paths(const DeviceSettings& settings, BusAddressOf bus = physical_address);

}  // namespace wherry::probe
