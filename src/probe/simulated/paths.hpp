// SPDX-License-Identifier: Apache-2.0
// Simulated paths: the FPGA designs of paper 000 (sim/designs, docs/design/designs.md).
#pragma once

#include "probe/registry.hpp"

namespace wherry::probe {

/// The paths sim.bram.h2c to sim.linux.c2h.
[[nodiscard]] Paths simulated_paths();

}  // namespace wherry::probe
