// SPDX-License-Identifier: Apache-2.0
// Rates of the DMA engine's data part, and the upper bound from the link.
#pragma once

#include <cstdint>
#include <string>

#include "sim/dma/data_rig.hpp"

namespace wherry::sim::dma {

struct RateRun {
  Way way = Way::kToCard;
  std::uint32_t bytes = 4096;  ///< of a transfer; turns of at most 4 KiB
  unsigned depth = 16;         ///< transfers under way
  /// Time from a transfer's end to the turn of its successor: status word, host, doorbell, fetch of the
  /// descriptor.
  double think_ns = 1410;
  std::uint32_t host_off = 0, card_off = 0;  ///< from aligned addresses
  std::uint32_t transfers = 2000;
  RigOptions rig;
};

struct RateResult {
  double gbytes = 0, millions = 0, bound_gbytes = 0, share = 0, latency_ns = 0;  ///< latency: turn to answer, mean
  double up_use = 0, down_use = 0;                                               ///< shares of the link's time
  std::uint64_t cycles = 0, bursts = 0;
  std::string error;
};

[[nodiscard]] RateResult measure(const RateRun& run);

}  // namespace wherry::sim::dma
