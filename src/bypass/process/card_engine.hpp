// SPDX-License-Identifier: Apache-2.0
// What rings in host memory need of a card (docs/design/bypass-host-rings.md): copies by the DMA engine beside the
// core, and posted writes into the core's window.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "bypass/engine_mover.hpp"
#include "pci/vfio.hpp"
#include "pci/vfio_function.hpp"

namespace wherry::bypass {

class CardEngine : public Mover {
 public:
  /// Writes up to 64 bytes of the window that do not cross a multiple of 64. The writes are posted and arrive in
  /// ascending order. A descriptor's byte with DD and the fields beside it arrive together. Offset and size are
  /// multiples of 8.
  virtual void write_line(std::uint32_t offset, std::span<const std::byte> bytes) = 0;
  /// Ends all copies. Blocks until none is under way. Errors: as dma::Engine::stop().
  virtual Status stop() = 0;
};

/// The DMA engine in BAR 4 of the card (docs/guide/cards.md), through VFIO. One thread.
class VfioCardEngine final : public CardEngine {
 public:
  /// Where the engine's registers and doorbells begin in the BAR.
  static constexpr unsigned kBar = 4;
  static constexpr std::uint64_t kRegisters = 0, kBells = 0x1000, kBarBytes = 0x2000;

  /// Opens the engine of device `card` of `vfio`, which must outlive it. `mirror`: the bus address of the mirror.
  /// Resets the engine's rings. kNotFound: the card has no engine; kUnsupported: its window cannot be mapped; other
  /// errors as dma::Engine::open().
  static Result<std::unique_ptr<CardEngine>> open(pci::Vfio& vfio, std::size_t card, std::uint64_t mirror);

  [[nodiscard]] bool try_post(Way way, std::uint32_t offset, std::uint32_t bytes) override {
    return mover_.try_post(way, offset, bytes);
  }
  void ring(Way way) override { mover_.ring(way); }
  [[nodiscard]] Result<std::size_t> poll(Way way) override { return mover_.poll(way); }
  void write_line(std::uint32_t offset, std::span<const std::byte> bytes) override;
  Status stop() override { return engine_->stop(); }

 private:
  VfioCardEngine(std::unique_ptr<pci::VfioFunction> function, std::unique_ptr<dma::Engine> engine, std::uint64_t mirror,
                 std::span<std::byte> window)
      : function_(std::move(function)), engine_(std::move(engine)), mover_(*engine_, mirror), window_(window) {}

  std::unique_ptr<pci::VfioFunction> function_;
  std::unique_ptr<dma::Engine> engine_;
  EngineMover mover_;
  std::span<std::byte> window_;
};

}  // namespace wherry::bypass
