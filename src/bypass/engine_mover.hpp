// SPDX-License-Identifier: Apache-2.0
// Copies for rings in host memory (host_rings.hpp), by the card's DMA engine.
#pragma once

#include <cstdint>

#include "bypass/host_rings.hpp"
#include "dma/engine.hpp"

namespace wherry::bypass {

/// Copies with the engine's first channel in each direction. No other code may use these two rings.
class EngineMover final : public Mover {
 public:
  /// `mirror`: the bus address of the mirror. `engine` outlives it. `bell`: how doorbells are rung.
  EngineMover(dma::Engine& engine, std::uint64_t mirror, dma::Bell bell = dma::Bell::kDescriptor)
      : engine_(engine), mirror_(mirror), bell_(bell) {}
  [[nodiscard]] bool try_post(Way way, std::uint32_t offset, std::uint32_t bytes) override;
  void ring(Way way) override { ring_of(way).ring_bell(bell_); }
  [[nodiscard]] Result<std::size_t> poll(Way way) override;

 private:
  [[nodiscard]] dma::Ring& ring_of(Way way);
  dma::Engine& engine_;
  std::uint64_t mirror_;
  dma::Bell bell_;
};

}  // namespace wherry::bypass
