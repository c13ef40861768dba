// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "probe/path.hpp"

namespace wherry::probe {

/// `doca.dma.h2c`, `doca.dma.c2h`, started by the host, and the same with `.device`, started by the DPU. They are
/// always absent. NVIDIA ships the headers of DOCA with its SDK only. They define structures, flags and versioned
/// symbols. Without these a call by dlopen would be a guess.
std::vector<std::unique_ptr<Path>> doca_paths();

}  // namespace wherry::probe
