// SPDX-License-Identifier: Apache-2.0
// Registers Arrow's compute functions in this process on first use. So an agent without queries saves their cost.
#pragma once

#include "wherry/status.hpp"

namespace wherry::move {

/// Thread-safe. Call it before any function of arrow::compute or arrow::engine.
Status start_compute();

}  // namespace wherry::move
