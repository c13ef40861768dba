// SPDX-License-Identifier: Apache-2.0
#include "sim/qemu/proxy_card.hpp"

#include <algorithm>
#include <cstring>

namespace wherry::sim {
namespace {

// PCI Local Bus 3.0, 6.1: configuration space, type 00h.
constexpr std::uint32_t kConfigVendor = 0x00;
constexpr std::uint32_t kConfigDevice = 0x02;
constexpr std::uint32_t kConfigCommand = 0x04;
constexpr std::uint32_t kConfigClass = 0x0A;
constexpr std::uint32_t kConfigBars = 0x10;
constexpr std::uint32_t kConfigBar = kConfigBars + 4 * kCardBar;
constexpr std::uint16_t kMemoryAndMaster = 0x0006;
constexpr std::uint16_t kProcessingAccelerator = 0x1200;

}  // namespace

ProxyCard::ProxyCard(DmaTarget& card) : card_(card) {
  std::memcpy(&config_[kConfigVendor], &kCardVendor, 2);
  std::memcpy(&config_[kConfigDevice], &kCardDevice, 2);
  std::memcpy(&config_[kConfigClass], &kProcessingAccelerator, 2);
}

std::uint64_t ProxyCard::config_read(std::uint32_t at, std::uint32_t bytes) const {
  std::uint64_t value = 0;
  std::memcpy(&value, &config_[at], bytes);
  return value;
}

void ProxyCard::config_write(std::uint32_t at, std::uint32_t bytes, std::uint32_t value) {
  for (std::uint32_t i = 0; i < std::min(bytes, 4U); ++i) {
    const std::uint32_t here = at + i;
    std::uint32_t writable = 0;
    if (here >= kConfigBar && here < kConfigBar + 4) writable = ~(kBarBytes - 1) >> (8 * (here - kConfigBar)) & 0xFF;
    if (here == kConfigCommand) writable = kMemoryAndMaster;
    const std::uint32_t kept = std::to_integer<std::uint32_t>(config_[here]) & ~writable;
    config_[here] = static_cast<std::byte>(kept | (value >> (8 * i) & writable));
  }
}

std::optional<std::uint32_t> ProxyCard::offset_in_bar(const ProxyMessage& message) {
  const std::uint64_t base = config_read(kConfigBar, 4);
  if (message.address >= base && message.address - base <= kBarBytes - message.bytes)
    return static_cast<std::uint32_t>(message.address - base);
  ++strays_;
  return std::nullopt;
}

std::optional<std::uint64_t> ProxyCard::handle(const ProxyMessage& message) {
  const auto at = static_cast<std::uint32_t>(message.address);
  std::uint64_t value = message.value;
  switch (message.command) {
    case ProxyCommand::kConfigRead:
      return config_read(at, message.bytes);
    case ProxyCommand::kConfigWrite:
      config_write(at, message.bytes, static_cast<std::uint32_t>(value));
      break;
    case ProxyCommand::kBarWrite:
      ++bar_writes_;
      if (const auto offset = offset_in_bar(message))
        card_.write(*offset, std::as_bytes(std::span(&value, 1)).first(message.bytes));
      break;
    case ProxyCommand::kBarRead:
      ++bar_reads_;
      value = 0;
      if (const auto offset = offset_in_bar(message))
        card_.read(*offset, std::as_writable_bytes(std::span(&value, 1)).first(message.bytes));
      return value;
    default:
      break;
  }
  if (!message.wants_answer()) return std::nullopt;
  return 0;
}

}  // namespace wherry::sim
