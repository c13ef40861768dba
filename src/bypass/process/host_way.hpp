// SPDX-License-Identifier: Apache-2.0
// Rings in the host's memory, set up in a VFIO container: mirror, mailbox, engine and HostRings
// (docs/design/bypass-host-rings.md). One thread. No call blocks except open() and stop().
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "bypass/card.hpp"
#include "bypass/host_rings.hpp"
#include "bypass/nic/registers.hpp"
#include "bypass/process/card_engine.hpp"
#include "pci/vfio.hpp"

namespace wherry::bypass {

/// Opens the engine of a device of the container, for a mirror at a bus address.
using OpenEngine = std::function<Result<std::unique_ptr<CardEngine>>(pci::Vfio&, std::size_t, std::uint64_t)>;

class HostWay final : HostRingsAccess {
 public:
  /// Allocates the memory and opens the engine. `card`: the device of `vfio`. `vfio` and `nic` must outlive it.
  static Result<std::unique_ptr<HostWay>> open(pci::Vfio& vfio, std::size_t card, const Personality& personality,
                                               Registers& nic, std::uint32_t pairs, const OpenEngine& open_engine);

  /// The bus addresses for CardSetup.
  [[nodiscard]] std::uint64_t mirror() const noexcept { return mirror_address_; }
  [[nodiscard]] std::uint64_t mailbox() const noexcept { return mailbox_address_; }
  /// Copies bytes through the engine into slots of the card and back, and compares them. The queue pairs must be
  /// stopped. kUnavailable: other bytes, or none, arrived.
  Status try_copies(CardAccess& card, std::uint64_t seed);
  /// Begins to serve rings of these sizes. Call it before the NIC gets its rings.
  void begin(const CardShape& shape);
  /// See HostRings::turn().
  Result<bool> turn() { return rings_->turn(); }
  /// Ends all copies. Frames that were under way are lost. Errors: as CardEngine::stop().
  Status stop() { return engine_->stop(); }
  [[nodiscard]] const HostRingsCounters& counters() const noexcept { return rings_->counters(); }

 private:
  HostWay(const Personality& personality, Registers& nic, std::uint32_t pairs)
      : personality_(personality), nic_(nic), pairs_(pairs) {}
  Status copy(Mover::Way way, std::uint32_t offset, std::uint32_t bytes, CardAccess& card);
  // HostRingsAccess
  void write_window(std::uint32_t offset, std::span<const std::byte> bytes) override {
    engine_->write_line(offset, bytes);
  }
  void write_rx_tail(std::uint32_t pair, std::uint32_t value) override {
    nic_.write(personality_.rx_tail_offset + personality_.rx_tail_stride * pair, value);
  }
  void write_tx_tail(std::uint32_t pair, std::uint32_t value) override {
    nic_.write(personality_.tx_tail_offset + personality_.tx_tail_stride * pair, value);
  }

  const Personality& personality_;
  Registers& nic_;
  std::uint32_t pairs_;
  std::span<std::byte> mirror_, mailbox_;
  std::uint64_t mirror_address_ = 0, mailbox_address_ = 0;
  std::unique_ptr<CardEngine> engine_;
  std::unique_ptr<HostRings> rings_;
};

}  // namespace wherry::bypass
