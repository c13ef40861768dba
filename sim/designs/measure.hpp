// SPDX-License-Identifier: Apache-2.0
// Blocking callers, one per channel, as in the paper's tools. They measure a design's bandwidth at one size. The code
// compares every byte of the last transfers.
#pragma once

#include <cstdint>
#include <string>

#include "sim/designs/card.hpp"
#include "sim/designs/engine.hpp"
#include "sim/designs/presets.hpp"

namespace wherry::sim::designs {

/// Where the channels' buffers lie in the card's memory: in rows of one bank (1 MiB apart and multiples), or each
/// another 40 KiB further, which is another bank in litedram's address map.
enum class Placement : std::uint8_t { kOneBank, kOtherBanks };

struct PointOptions {
  CardOptions card;
  EnginePreset preset = kXdma;
  Flow flow = Flow::kToCard;
  Notice notice = Notice::kInterrupt;
  std::uint32_t channels = 1;
  std::uint64_t bytes = 4096;  ///< of a transfer, a multiple of 64
  Placement placement = Placement::kOtherBanks;
  bool in_step = false;     ///< the channels' first calls begin at once
  std::uint32_t calls = 0;  ///< of each channel that count; 0: as many as the size needs
  MakeNeighbour neighbour;  ///< of the designs with a core; empty: it is idle
  std::uint64_t seed = 1;
};

struct Point {
  double gbytes = 0;         ///< GB/s, 10^9 bytes, of all channels
  double transfer_ns = 0;    ///< mean, from doorbell to the end that the host sees
  std::uint64_t cycles = 0;  ///< of the engine
  std::string error;         ///< wrong bytes, a broken rule, or that nothing moves; empty: none
};

/// A transfer that is larger than a run of the preset consists of several runs, one call each. So the rate of one run
/// is the transfer's rate, and only one run is simulated.
[[nodiscard]] Point measure(const PointOptions& options);

}  // namespace wherry::sim::designs
