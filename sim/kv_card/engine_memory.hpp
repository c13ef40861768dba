// SPDX-License-Identifier: Apache-2.0
// Access to the kv card's memory through the DMA engine: driver (src/dma), simulated PCIe, Verilated engine,
// kv_host_path. Engine and core have one clock: an edge of the engine's is a cycle of the core. While the engine
// sleeps, the core runs by itself. docs/guide/kv-snapshot.md, "A card's memory".
//
// One thread, the core's.
#pragma once

#include <memory>

#include "dma/engine.hpp"
#include "sim/card/rig.hpp"
#include "sim/kv_card/card_memory.hpp"
#include "sim/kv_card/kv_port.hpp"

namespace wherry::kv::rtl {

class EngineMemory final : public CardMemory {
 public:
  /// Brings the engine up, which takes some thousand of the core's cycles. `core` must outlive it. Ends the process
  /// with a message if the driver finds no engine.
  explicit EngineMemory(Core& core);

  void read(std::uint64_t address, std::span<std::byte> to) override;
  /// Precondition: the core is in no epoch, and its cache is cleared before it enters one (kv_host_path,
  /// "Requirements"). Any address and size.
  void write(std::uint64_t address, std::span<const std::byte> from);
  /// Makes one transfer of at most kBuffer bytes, in buffer(), and returns its outcome. Nothing ends the process.
  dma::Done move(dma::Direction direction, std::uint64_t address, std::uint32_t bytes);
  [[nodiscard]] std::span<std::byte> buffer() const noexcept { return memory_.bytes; }
  [[nodiscard]] std::uint64_t iova() const noexcept { return memory_.iova; }  ///< buffer()'s bus address

  [[nodiscard]] dma::Engine& engine() noexcept { return *engine_; }
  [[nodiscard]] wherry::sim::card::Rig& rig() noexcept { return rig_; }
  [[nodiscard]] const KvPort& port() const noexcept { return port_; }

  static constexpr std::size_t kBuffer = std::size_t{64} << 10;

 private:
  KvPort port_;
  wherry::sim::card::Rig rig_;
  std::unique_ptr<dma::Engine> engine_;
  pci::DmaMemory memory_;
  std::uint64_t cookie_ = 0;
};

}  // namespace wherry::kv::rtl
