// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "probe/path.hpp"

namespace wherry::probe {

/// `doca.dma.h2c`, `doca.dma.c2h`, started by the host; `.device`: started by the
/// DPU. They are always absent: NVIDIA ships DOCA's headers (structures, flags,
/// versioned symbols) only with its SDK, so calls by dlopen would be guesses.
std::vector<std::unique_ptr<Path>> doca_paths();

}  // namespace wherry::probe
