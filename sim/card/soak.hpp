// SPDX-License-Identifier: Apache-2.0
// Random transfers through the driver, with every fault that sim/pcie has. docs/design/dma-card.md, "The soak".
#pragma once

#include <cstdint>
#include <string>

namespace wherry::sim::card {

struct SoakOptions {
  std::uint64_t seed = 1;
  std::uint64_t bytes = 1'000'000;  ///< that worlds ask for together; a world has some 300 transfers
  bool forgotten =
      false;  ///< in half of the worlds a reset of the function leaves reads without an answer (ReadsAtReset)
  std::uint32_t event_in = 120;  ///< a reset, bus mastering off, a ring that is stopped: in one round of so many
};

struct SoakResult {
  std::uint64_t worlds = 0, transfers = 0, bytes = 0;  ///< bytes: asked for
  std::uint64_t good = 0, good_bytes = 0;              ///< ended without an error, and every byte was right
  std::uint64_t failed = 0;                            ///< ended with an error of their own
  std::uint64_t voided = 0;                            ///< ended by a reset
  std::uint64_t struck = 0;                            ///< TLPs that a fault struck
  std::uint64_t resets = 0, recoveries = 0, masters_off = 0, engine_timeouts = 0, unexpected = 0;
  std::uint64_t holes = 0;  ///< bytes of good transfers to the host whose write a fault took. PCIe reports it to
                            ///< the host (AER), but not to the card
  std::uint64_t cycles = 0;
  std::string error;  ///< what was wrong, and the world's seed; empty: nothing
};

/// Runs worlds with seeds from options.seed on, until they asked for enough bytes or one is wrong.
[[nodiscard]] SoakResult soak(const SoakOptions& options);

}  // namespace wherry::sim::card
