// SPDX-License-Identifier: Apache-2.0
// The card as a PCI function of QEMU's machine, by the messages of proxy_message.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "sim/bypass/card.hpp"
#include "sim/qemu/proxy_message.hpp"

namespace wherry::sim {

inline constexpr std::uint16_t kCardVendor = 0x10EE;  ///< Xilinx, the default of its PCIe bridges
inline constexpr std::uint16_t kCardDevice = 0x9038;
inline constexpr unsigned kCardBar = 2;

/// BAR 2 alone: 32 bit and not prefetchable, since multi-process QEMU knows no other (hw/remote/proxy.c,
/// probe_pci_info).
class ProxyCard {
 public:
  explicit ProxyCard(DmaTarget& card);

  /// What to answer; nothing to messages that want no answer.
  [[nodiscard]] std::optional<std::uint64_t> handle(const ProxyMessage& message);

  [[nodiscard]] std::uint64_t bar_reads() const noexcept { return bar_reads_; }
  [[nodiscard]] std::uint64_t bar_writes() const noexcept { return bar_writes_; }
  /// Accesses beside the BAR, which QEMU should never send.
  [[nodiscard]] std::uint64_t strays() const noexcept { return strays_; }

 private:
  [[nodiscard]] std::uint64_t config_read(std::uint32_t at, std::uint32_t bytes) const;
  void config_write(std::uint32_t at, std::uint32_t bytes, std::uint32_t value);
  [[nodiscard]] std::optional<std::uint32_t> offset_in_bar(const ProxyMessage& message);

  DmaTarget& card_;
  std::array<std::byte, 4096> config_{};
  std::uint64_t bar_reads_ = 0, bar_writes_ = 0, strays_ = 0;
};

}  // namespace wherry::sim
