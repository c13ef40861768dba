// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "probe/device/settings.hpp"
#include "probe/path.hpp"

namespace wherry::probe {

/// `cuda.h2d`, `cuda.d2h` (pinned host memory), `cuda.h2d.pageable`, `cuda.d2h.pageable`, `cuda.d2d`: copies by the
/// GPU's copy engines. `cuda.kernel-read`, `cuda.kernel-write`: a kernel reads or writes host memory that is mapped
/// into the GPU's addresses. The other end is the GPU's memory. `cuda.mapped`: both ends are mapped host memory, so
/// every byte crosses the link both ways. Channels are streams. A blocking notice sleeps in cuEventSynchronize.
std::vector<std::unique_ptr<Path>> cuda_paths(const DeviceSettings& settings);

}  // namespace wherry::probe
