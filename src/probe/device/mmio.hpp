// SPDX-License-Identifier: Apache-2.0
// Loads and stores of a function's memory, mapped into this process.
//
// Sizes: 4 and 8 bytes are one aligned access. Larger sizes are a multiple of 64, as accesses of 8 bytes. The processor
// may join accesses to a write-combined mapping into packets of 64. It never joins those to an uncached one. Stores are
// posted, and nothing tells when they arrive. So poll() reads the last place back. PCI's ordering rules keep this read
// behind the stores, and it ends all slots at once. The time contains the read. At depth 1 that is the latency of a
// write and a read. At a greater depth, the slots share the read.
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
