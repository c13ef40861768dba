// SPDX-License-Identifier: Apache-2.0
// The card as a PCI function of QEMU's machine, accessed by the messages of proxy_message.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "sim/bypass/card.hpp"
#include "sim/qemu/proxy_message.hpp"

namespace wherry::sim {

inline constexpr std::uint16_t kCardVendor = 0x10EE;  ///< Xilinx, the default of its PCIe bridges
inline constexpr std::uint16_t kCardDevice = 0x9038;
inline constexpr unsigned kRegisterBar = 0, kCardBar = 2;

/// A conventional function: multi-process QEMU gives it 256 bytes of configuration space, whose content we choose. QEMU
/// has no prefetchable BARs for it (hw/remote/proxy.c, probe_pci_info), so its BARs lie below 4 GiB.
class ProxyCard {
 public:
  /// BAR 2 alone, 32 bit.
  explicit ProxyCard(DmaTarget& card) : ProxyCard(card, nullptr) {}
  /// Also BAR 0. BAR 2 is 64 bit for a reader after a reset. Before the reset QEMU reads it, and would take the upper
  /// half of such a BAR for another one.
  ProxyCard(DmaTarget& card, RegisterTarget& registers) : ProxyCard(card, &registers) {}

  /// The answer. Empty for messages that need no answer.
  [[nodiscard]] std::optional<std::uint64_t> handle(const ProxyMessage& message);

  /// Whether the card may write at all.
  [[nodiscard]] bool bus_master() const noexcept;
  [[nodiscard]] std::uint64_t bar_reads() const noexcept { return bar_reads_; }
  [[nodiscard]] std::uint64_t bar_writes() const noexcept { return bar_writes_; }
  [[nodiscard]] std::uint64_t resets() const noexcept { return resets_; }
  /// Accesses outside the BARs, which QEMU should never send, and register accesses that are not of four bytes.
  [[nodiscard]] std::uint64_t strays() const noexcept { return strays_; }

 private:
  /// Where an access goes.
  struct Place {
    unsigned bar = 0;
    std::uint32_t offset = 0;
  };
  ProxyCard(DmaTarget& card, RegisterTarget* registers);
  void reset();
  [[nodiscard]] std::uint64_t config_read(std::uint32_t at, std::uint32_t bytes) const;
  void config_write(std::uint32_t at, std::uint32_t bytes, std::uint32_t value);
  [[nodiscard]] std::uint32_t writable(std::uint32_t at) const;
  [[nodiscard]] std::optional<Place> find(const ProxyMessage& message);
  [[nodiscard]] std::uint64_t bar_read(const ProxyMessage& message);
  void bar_write(const ProxyMessage& message);

  DmaTarget& card_;
  RegisterTarget* registers_;
  bool wide_ = false;
  std::array<std::byte, 4096> config_{};
  std::uint64_t bar_reads_ = 0, bar_writes_ = 0, resets_ = 0, strays_ = 0;
};

}  // namespace wherry::sim
