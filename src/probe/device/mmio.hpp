// SPDX-License-Identifier: Apache-2.0
// Loads and stores of a function's memory, mapped into this process.
//
// Sizes: 4 and 8 bytes are one access, aligned; larger sizes are a multiple of 64, as accesses of 8 bytes. The
// processor may join those of a write-combined mapping to packets of 64; it never joins those of an uncached one.
// Stores are posted: nothing tells when they arrive. poll() therefore reads the last place back, which PCI's rules of
// order hold behind the stores, and ends all slots at once; the read is within the time. At depth 1 that is the latency
// of a write and a read; deeper, the read is shared.
#pragma once

#include <memory>
#include <vector>

#include "probe/device/settings.hpp"
#include "probe/path.hpp"

namespace wherry::probe {

/// `mmio.bar.read`, `mmio.bar.write` (resourceN, uncached) and `mmio.bar.wc` (resourceN_wc) of WHERRY_PROBE_BAR, a
/// range that behaves as memory; `mmio.ivshmem.read`, `mmio.ivshmem.write` of WHERRY_PROBE_IVSHMEM, memory that a QEMU
/// guest shares with a file of its host.
std::vector<std::unique_ptr<Path>> mmio_paths(const DeviceSettings& settings);

}  // namespace wherry::probe
