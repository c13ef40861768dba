// SPDX-License-Identifier: Apache-2.0
// The card with the Verilated core in it. src/bypass does the host's work: the program that sets up a card behind VFIO
// sets up this one, through the same registers.
//
// One queue pair, and rings of the size that the core was built with: rx_entries(), tx_entries(). A slot belongs to
// each receive descriptor: of QueueSetup's slots the first rx_entries are used. The packed buffer has the size of the
// core's. An error that only a wrong core can make ends the process with a sentence.
#pragma once

#include <array>
#include <memory>
#include <span>

#include "sim/bypass/card.hpp"
#include "sim/bypass/rtl_core.hpp"

namespace wherry::sim {

class RtlCard final : public Card {
 public:
  /// `function` decides in place; it outlives the card. None: only the stream can be used.
  explicit RtlCard(InPlaceFunction* function = nullptr, const RtlOptions& options = {});
  RtlCard(const RtlCard&) = delete;
  RtlCard& operator=(const RtlCard&) = delete;
  ~RtlCard() override;

  /// The clock runs until the access is done.
  void write(std::uint32_t offset, std::span<const std::byte> data) override;
  void read(std::uint32_t offset, std::span<std::byte> data) override;
  std::optional<TailWrite> next_tail() override;
  /// After an access one cycle. Otherwise until the core is idle, but at least some cycles, so that its timers advance.
  void tick() override;

  std::optional<Frame> take() override;
  /// Frames of less than 17 bytes are dropped by the core, and count as tx_stopped.
  bool try_put(const Frame& frame) override;

  Status configure(const CardSetup& setup) override;
  Status start(std::uint32_t queue) override;
  void stop(std::uint32_t queue) override;
  /// Of the core's registers, when nothing has moved for some cycles, and of what waits at its ports. rx_damaged:
  /// marked by the NIC; rx_too_long: these, and impossible lengths; rx_bytes and tx_bytes: of frames that were not
  /// dropped; stray_writes and stray_reads: in beats. rx_cut is not known.
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
