// SPDX-License-Identifier: Apache-2.0
// The common part of families whose rings are registers. In all of them, the registers of a ring (base, length, head,
// tail, control) have the same distances (spec/nic_personalities.toml, rx_ring_offset).
#pragma once

#include "bypass/nic/nic.hpp"

namespace wherry::bypass {

class RingNic : public Nic {
 public:
  RingNic(const Personality& personality, Registers& registers) : personality_(personality), registers_(registers) {}

  void write_rx_tail(std::uint32_t value) override { registers_.write(personality_.rx_tail_offset, value); }
  void write_tx_tail(std::uint32_t value) override { registers_.write(personality_.tx_tail_offset, value); }
  [[nodiscard]] MacAddress mac() const override { return mac_; }
  [[nodiscard]] const Personality& personality() const noexcept override { return personality_; }
  [[nodiscard]] bool has_loopback() const noexcept override { return personality_.loopback_mask != 0; }
  [[nodiscard]] Progress progress() override;

 protected:
  static constexpr std::uint32_t kRingBaseLow = 0x00, kRingBaseHigh = 0x04, kRingLength = 0x08, kRingHead = 0x10,
                                 kRingTail = 0x18,
                                 kRingControl = 0x28;  ///< of a ring, from its offset
  [[nodiscard]] std::uint32_t rx_ring(std::uint32_t pair) const noexcept {
    return personality_.rx_ring_offset + personality_.rx_ring_stride * pair;
  }
  [[nodiscard]] std::uint32_t tx_ring(std::uint32_t pair) const noexcept {
    return personality_.tx_ring_offset + personality_.tx_ring_stride * pair;
  }
  [[nodiscard]] virtual std::uint32_t most_pairs() const noexcept;
  /// Sets up receive side scaling over `pairs`, or ends it. `enable` is the value that switches it on in MRQC.
  void spread(std::uint32_t pairs, std::uint32_t enable);
  /// kInvalidArgument: bases, lengths or sizes that the family does not accept. The message names each.
  [[nodiscard]] Status check(const NicSetup& setup) const;
  /// Writes base, length, head and tail. The queue must be off.
  void write_ring(std::uint32_t offset, std::uint64_t base, std::uint32_t bytes);
  /// Switches the ring off, and waits until it reads as off.
  [[nodiscard]] Status disable_ring(std::uint32_t offset, std::string_view what);
  /// Switches the ring on with `control`, and waits until it reads as on.
  [[nodiscard]] Status enable_ring(std::uint32_t offset, std::uint32_t control, std::string_view what);
  /// Reads receive address 0, which the NIC has loaded. Empties all other filters.
  [[nodiscard]] Status read_mac();
  void clear_filters();
  /// kUnavailable: the NIC reads as all ones, so it was removed, or its PCIe link is down.
  [[nodiscard]] Status alive();
  [[nodiscard]] Status silent(std::string_view what) const;

  const Personality& personality_;
  Registers& registers_;
  MacAddress mac_{};
};

}  // namespace wherry::bypass
