// SPDX-License-Identifier: Apache-2.0
// The DMA engine's driver in user space: the card's identity, its rings, its resets. docs/dma-card.md.
//
// One thread opens, resets and closes it, while no other uses a ring.
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
  /// Bytes that a ring must have under way before Ring::ring_bell_in_time() leaves a doorbell for later. As tune() has
  /// it for a round trip of 800 ns.
  std::uint32_t plenty = 40U << 10;
  std::uint32_t reads_ahead = kMostAhead;  ///< see limit_reads()
};

class Engine {
 public:
  /// Takes the card over: resets the function if it can, gives each ring its memory, runs them. `device` outlives the
  /// engine. kNotFound: no DMA engine answers there; kVersionMismatch; kInvalidArgument; kResourceExhausted.
  static Result<std::unique_ptr<Engine>> open(pci::Device& device, const EngineOptions& options = {});
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  /// Bus mastering goes off: nothing is read or written any more.
  ~Engine();

  [[nodiscard]] unsigned channels() const noexcept { return channels_; }
  [[nodiscard]] Ring& ring(Direction direction, unsigned channel) {
    return *rings_.at(direction == Direction::kToHost ? channels_ + channel : channel);
  }
  /// Function-level reset, also in flight; everything is set up again, and outstanding transfers end as kReset. Blocks.
  Status reset();
  /// Reads for transfers to the card ask for so many bytes ahead, at most: half of kMostAhead to kMostAhead. What is
  /// more than the link moves within a round trip waits in the host's queue, and doorbells and descriptors wait behind
  /// it.
  void limit_reads(std::uint32_t bytes);
  /// How long the engine waits for a read of the host's memory: the median of some. No transfers are outstanding on the
  /// first channel to the card; nothing is moved. Blocks for some 100 us. kFailedPrecondition, kDeadlineExceeded.
  Result<std::chrono::nanoseconds> measure_read();
  /// limit_reads(), and EngineOptions::plenty, as measure_read() says. Errors: as there.
  Status tune();
  /// Whether the card answers.
  [[nodiscard]] bool alive();

 private:
  Engine(pci::Device& device, const EngineOptions& options) : device_(device), options_(options) {}
  Status identify();
  Status make_rings();
  Status set_up();

  pci::Device& device_;
  EngineOptions options_;
  unsigned channels_ = 0;
  pci::DmaMemory status_;
  std::vector<Fd> eventfds_;
  std::vector<std::unique_ptr<Ring>> rings_;  ///< to the card first
};

}  // namespace wherry::dma
