// SPDX-License-Identifier: Apache-2.0
// Rates of the DMA card through its driver, and the upper bound from the link (sim/dma/host_link.hpp). All of it is
// simulated.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/card/rig.hpp"
#include "sim/card/stages.hpp"

namespace wherry::sim::card {

/// One measurement. It excludes the driver's own instructions: the host polls its memory every `look_ns`, and posts at
/// once.
struct RateRun {
  wherry::dma::Direction direction = wherry::dma::Direction::kToCard;
  std::uint32_t bytes = 4096;
  unsigned depth = 16;  ///< transfers that a channel has outstanding
  unsigned channels = 1;
  wherry::dma::Bell bell = wherry::dma::Bell::kTail;
  bool in_time = true;             ///< doorbells by Ring::ring_bell_in_time(), if they are tails; else at once
  bool tuned = true;               ///< Engine::tune() before
  bool by_interrupt = false;       ///< depth 1 only: the driver sleeps until the message comes
  unsigned batch = 1;              ///< so many are posted before a doorbell is rung
  std::uint32_t transfers = 1000;  ///< of each channel
  double rtt_ns = 800, jitter_ns = 100;
  double look_ns = 20;
  std::uint32_t host_off = 0, card_off = 0;  ///< from multiples of 64
  MemoryKind memory = MemoryKind::kBram;
  std::uint64_t seed = 1;  ///< of the jitter
  bool stages = false;     ///< also say where the time goes; one channel, depth 1 to 128
};

/// Where the time went, by stage (stages.hpp).
struct StageReport {
  std::array<double, kStages> mean_ns{};
  double per_bell = 0, per_fetch = 0;  ///< transfers of a doorbell, of a read of descriptors
  LinkUse down, up;
};

struct RateResult {
  double gbytes = 0, millions = 0;
  /// The link's bound from the bytes of data, headers and framing alone, and the measured share of it.
  double bound_gbytes = 0, share = 0;
  /// The same with the ACKs and credits for the engine's read requests, which the host must send. To the card:
  /// one of each within the longest time that the specification allows (pcie::dllp_latency). To the host:
  /// none.
  double bound_with_dllps_gbytes = 0, share_with_dllps = 0;
  double latency_us = 0;  ///< posting to the driver's knowing, mean
  double unfair =
      0;  ///< of the channels' bytes in the time measured: the largest distance from their mean, as a share of it
  double up_use = 0, down_use = 0;  ///< shares of the link's time
  double status_words = 0;          ///< writes of the card beyond payload, for each transfer
  std::uint64_t cycles = 0;
  std::optional<StageReport> stages;
  std::string error;  ///< empty: all bytes are right
};

[[nodiscard]] RateResult measure(const RateRun& run);
/// The transfer size at which a channel at depth 1 reaches half of the link's bound, interpolated linearly between
/// measurements at powers of two. Bytes.
[[nodiscard]] double half_rate_bytes(const RateRun& run);

}  // namespace wherry::sim::card
