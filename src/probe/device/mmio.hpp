// SPDX-License-Identifier: Apache-2.0
// Loads from and stores to a PCI function's memory, which is mapped into this process.
//
// Sizes: 4 and 8 bytes are one aligned access; larger sizes are multiples of 64, in accesses of 8
// bytes. The processor may join accesses to a write-combined mapping into packets of 64 bytes, but
// never joins uncached ones. Stores are posted without an acknowledgement, so poll() reads the last
// place back. PCI's ordering rules keep this read behind the stores, so it ends all slots together.
// Its time counts: depth 1 measures a write and a read; at greater depth, the slots share the read.
#pragma once

#include <memory>
#include <vector>

#include "probe/device/settings.hpp"
#include "probe/path.hpp"

namespace wherry::probe {

/// `mmio.bar.read`, `mmio.bar.write` (resourceN, uncached) and `mmio.bar.wc` (resourceN_wc): the
/// range WHERRY_PROBE_BAR, which must behave as memory. `mmio.ivshmem.read`, `mmio.ivshmem.write`:
/// WHERRY_PROBE_IVSHMEM, memory that a QEMU guest shares with a file of its host.
std::vector<std::unique_ptr<Path>> mmio_paths(const DeviceSettings& settings);

}  // namespace wherry::probe
