// SPDX-License-Identifier: Apache-2.0
// Registers Arrow's compute functions in this process on first use, so an agent without queries does not pay for them.
#pragma once

#include "wherry/status.hpp"

namespace wherry::move {

/// Thread-safe. Before anything of arrow::compute and arrow::engine.
Status start_compute();

}  // namespace wherry::move
