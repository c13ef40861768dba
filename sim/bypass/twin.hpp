// SPDX-License-Identifier: Apache-2.0
// The bypass core in software, as the oracle for the RTL: written from the layout, the datasheets and the rules in
// twin_queue.hpp, not from the RTL. Rings are virtual: a descriptor is computed when the NIC reads it, and decoded when
// the NIC writes it. A transmission is complete when the NIC has read its last byte. No clock: tick() is one round.
#pragma once

#include <vector>

#include "sim/bypass/card.hpp"
#include "sim/bypass/twin_queue.hpp"

namespace wherry::sim {

class Twin final : public Card {
 public:
  /// `function` decides about frames in place, and must outlive the twin. Null: only the stream can be used.
  explicit Twin(InPlaceFunction* function = nullptr);
  Twin(const Twin&) = delete;  // its queues have its address
  Twin& operator=(const Twin&) = delete;

  void write(std::uint32_t offset, std::span<const std::byte> data) override;
  void read(std::uint32_t offset, std::span<std::byte> data) override;
  std::optional<TailWrite> next_tail() override;
  void tick() override;

  std::optional<Frame> take() override;
  bool try_put(const Frame& frame) override;

  Status configure(const CardSetup& setup) override;
  Status start(std::uint32_t queue) override;
  void stop(std::uint32_t queue) override;
  [[nodiscard]] CardCounters counters() const override;

  /// For assertions: whether each slot is in exactly one place.
  [[nodiscard]] bool slots_conserved() const;

 private:
  void read_part(std::uint32_t offset, std::span<std::byte> data);
  void write_part(std::uint32_t offset, std::span<const std::byte> data);
  void read_slot(std::uint32_t offset, std::span<std::byte> data);
  void read_pack(std::uint32_t offset, std::span<std::byte> data);
  void write_slot(std::uint32_t offset, std::span<const std::byte> data);
  [[nodiscard]] TwinQueue* owner(std::uint32_t slot);

  TwinShared shared_;
  std::vector<TwinQueue> queues_;
  std::size_t turn_ = 0;  ///< the queue whose tail writes come next
};

}  // namespace wherry::sim
