// SPDX-License-Identifier: Apache-2.0
// Random turns both ways with every fault that a host and a card can make, in a random world for each seed.
#pragma once

#include <cstdint>
#include <string>

namespace wherry::sim::dma {

struct SoakResult {
  std::uint64_t bytes = 0, turns = 0, failed = 0, faults = 0, resets = 0, timed_out = 0, unexpected = 0, cycles = 0;
  std::string error;  ///< empty if all is well
};

/// Moves about `bytes` bytes. `faults`: injects faults, and resets of the function.
[[nodiscard]] SoakResult soak(std::uint64_t seed, std::uint64_t bytes, bool faults);

}  // namespace wherry::sim::dma
