// SPDX-License-Identifier: Apache-2.0
// The card with the Verilated core in it. src/bypass does the host's work: it sets up this card through the same
// registers as a card behind VFIO.
//
// It has one queue pair, with rings of the size that the core was built with: rx_entries(), tx_entries(). Each receive
// descriptor owns a slot: of QueueSetup's slots the first rx_entries are used. The packed buffer has the core's size.
// An error that only a faulty core can make ends the process with a message.
#pragma once

#include <array>
#include <memory>
#include <span>

#include "sim/bypass/card.hpp"
#include "sim/bypass/rtl_core.hpp"

namespace wherry::sim {

class RtlCard final : public Card {
 public:
  /// `function` decides about frames in place, and must outlive the card. Null: only the stream can be used.
  explicit RtlCard(InPlaceFunction* function = nullptr, const RtlOptions& options = {});
  RtlCard(const RtlCard&) = delete;
  RtlCard& operator=(const RtlCard&) = delete;
  ~RtlCard() override;

  /// The clock runs until the access is done.
  void write(std::uint32_t offset, std::span<const std::byte> data) override;
  void read(std::uint32_t offset, std::span<std::byte> data) override;
  std::optional<TailWrite> next_tail() override;
  /// Runs one cycle after an access. Otherwise runs until the core is idle, with a minimum so that its timers advance.
  void tick() override;

  std::optional<Frame> take() override;
  /// The core drops frames of less than 17 bytes; they count as tx_stopped.
  bool try_put(const Frame& frame) override;

  Status configure(const CardSetup& setup) override;
  Status start(std::uint32_t queue) override;
  void stop(std::uint32_t queue) override;
  /// From the core's registers, once nothing has moved for some cycles, plus what waits at its ports. rx_damaged:
  /// marked by the NIC. rx_too_long: these, and impossible lengths. rx_bytes and tx_bytes: without dropped frames.
  /// stray_writes and stray_reads: in beats. rx_cut is not known.
  [[nodiscard]] CardCounters counters() const override;

  [[nodiscard]] std::uint32_t rx_entries() const noexcept;
  [[nodiscard]] std::uint32_t tx_entries() const noexcept;
  /// Since its reset.
  [[nodiscard]] std::uint64_t cycles() const noexcept;

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;  // counters() is const, but time passes
};

}  // namespace wherry::sim
