// SPDX-License-Identifier: Apache-2.0
// The DMA engine's driver in user space: the card's identity, its rings, its resets. docs/design/dma-card.md.
//
// One thread opens, resets and closes it; meanwhile no other thread may use a ring.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/fd.hpp"
#include "dma/ring.hpp"
#include "pci/device.hpp"

namespace wherry::dma {

struct EngineOptions {
  unsigned ring_bits = 8;    ///< 2^n descriptors a ring; 4 to 16
  unsigned channels = 0;     ///< in each direction; 0: all that the engine has
  bool interrupts = true;    ///< a vector and an eventfd for each ring
  unsigned status_pace = 8;  ///< cycles between two status words, at least
  /// Bytes that a ring must have in flight before Ring::ring_bell_in_time() omits a doorbell. The default is tune()'s
  /// result for a round trip of 800 ns.
  std::uint32_t plenty = 40U << 10;
  std::uint32_t reads_ahead = kMostAhead;  ///< see limit_reads()
};

class Engine {
 public:
  /// Takes over the card: resets the function if possible, gives each ring its memory, and starts the rings. `device`
  /// must outlive the engine. kNotFound: no DMA engine answers at this place; kVersionMismatch; kInvalidArgument;
  /// kResourceExhausted.
  static Result<std::unique_ptr<Engine>> open(pci::Device& device, const EngineOptions& options = {});
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  /// Switches bus mastering off, so that the card neither reads nor writes any more.
  ~Engine();

  [[nodiscard]] unsigned channels() const noexcept { return channels_; }
  [[nodiscard]] Ring& ring(Direction direction, unsigned channel) {
    return *rings_.at(direction == Direction::kToHost ? channels_ + channel : channel);
  }
  /// Function-level reset, even with transfers in flight; they end as kReset. All is set up again afterwards. Blocks.
  Status reset();
  /// Resets all rings, and blocks until no transfer is under way. Only the destructor may follow. kUnavailable: the
  /// card does not answer; kDeadlineExceeded: as Ring::recover().
  Status stop();
  /// Sets how many bytes ahead the reads for transfers to the card may request: half of kMostAhead to kMostAhead.
  /// Requests for more than the link moves in one round trip wait in the host's queue, and doorbells and descriptors
  /// wait behind them.
  void limit_reads(std::uint32_t bytes);
  /// The engine's time for a read of host memory: the median of several. No transfers may be outstanding on the first
  /// channel to the card. Moves no data. Blocks for about 100 us. kFailedPrecondition, kDeadlineExceeded.
  Result<std::chrono::nanoseconds> measure_read();
  /// Sets limit_reads() and EngineOptions::plenty from measure_read(). Errors: as measure_read().
  Status tune();
  /// Whether the card answers.
  [[nodiscard]] bool alive();

 private:
  Engine(pci::Device& device, const EngineOptions& options) : device_(device), options_(options) {}
  Status identify();
  Status clear_rings();
  Status make_rings();
  Status set_up();

  pci::Device& device_;
  EngineOptions options_;
  unsigned channels_ = 0, has_ = 0;  ///< used; that the engine has
  pci::DmaMemory status_;
  std::vector<Fd> eventfds_;
  std::vector<std::unique_ptr<Ring>> rings_;  ///< to the card first
};

}  // namespace wherry::dma
