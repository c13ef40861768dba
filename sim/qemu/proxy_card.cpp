// SPDX-License-Identifier: Apache-2.0
#include "sim/qemu/proxy_card.hpp"

#include <algorithm>
#include <cstring>

namespace wherry::sim {
namespace {

// PCI Local Bus 3.0, 6.1: configuration space, type 00h; 6.2.5.1: base addresses.
constexpr std::uint32_t kConfigVendor = 0x00;
constexpr std::uint32_t kConfigDevice = 0x02;
constexpr std::uint32_t kConfigCommand = 0x04;
constexpr std::uint32_t kConfigClass = 0x0A;
constexpr std::uint32_t kConfigBars = 0x10, kConfigBarsEnd = 0x28;
constexpr std::uint32_t kMasterBit = 1U << 2;
constexpr std::uint32_t kMemoryAndMaster = 0x0006;
constexpr std::uint16_t kProcessingAccelerator = 0x1200;
constexpr std::byte kBarOf64Bits{0x04};
constexpr std::uint32_t kBarKind = 0xF;

constexpr std::uint32_t config_of(unsigned bar) { return kConfigBars + 4 * bar; }
/// Byte `number` of the writable bits of a BAR of `bytes`.
constexpr std::uint32_t address_bits(std::uint32_t bytes, std::uint32_t number) {
  return ~(bytes - 1) >> (8 * number) & 0xFF;
}

}  // namespace

ProxyCard::ProxyCard(DmaTarget& card, RegisterTarget* registers) : card_(card), registers_(registers) {
  std::memcpy(&config_[kConfigVendor], &kCardVendor, 2);
  std::memcpy(&config_[kConfigDevice], &kCardDevice, 2);
  std::memcpy(&config_[kConfigClass], &kProcessingAccelerator, 2);
}

/// Resets what QEMU resets in its copy of the configuration space.
void ProxyCard::reset() {
  ++resets_;
  config_[kConfigCommand] = std::byte{0};
  std::fill(config_.begin() + kConfigBars, config_.begin() + kConfigBarsEnd, std::byte{0});
  if (registers_ == nullptr) return;
  wide_ = true;
  config_[config_of(kCardBar)] = kBarOf64Bits;
  registers_->reset();
}

bool ProxyCard::bus_master() const noexcept {
  return (std::to_integer<std::uint32_t>(config_[kConfigCommand]) & kMasterBit) != 0;
}

std::uint64_t ProxyCard::config_read(std::uint32_t at, std::uint32_t bytes) const {
  std::uint64_t value = 0;
  std::memcpy(&value, &config_[at], bytes);
  return value;
}

/// The writable bits of a byte of configuration space.
std::uint32_t ProxyCard::writable(std::uint32_t at) const {
  if (at == kConfigCommand) return kMemoryAndMaster;
  const std::uint32_t number = at % 4;
  if (at - number == config_of(kCardBar)) return address_bits(kBarBytes, number);
  if (at - number == config_of(kCardBar + 1) && wide_) return 0xFF;
  if (at - number == config_of(kRegisterBar) && registers_ != nullptr) return address_bits(kRegisterBytes, number);
  return 0;
}

void ProxyCard::config_write(std::uint32_t at, std::uint32_t bytes, std::uint32_t value) {
  for (std::uint32_t i = 0; i < std::min(bytes, 4U); ++i) {
    const std::uint32_t may = writable(at + i);
    const std::uint32_t kept = std::to_integer<std::uint32_t>(config_[at + i]) & ~may;
    config_[at + i] = static_cast<std::byte>(kept | (value >> (8 * i) & may));
  }
}

std::optional<ProxyCard::Place> ProxyCard::find(const ProxyMessage& message) {
  for (const auto& [bar, size] : {std::pair{kCardBar, kBarBytes}, std::pair{kRegisterBar, kRegisterBytes}}) {
    if (bar == kRegisterBar && registers_ == nullptr) continue;
    const std::uint64_t base = config_read(config_of(bar), 4) & ~std::uint64_t{kBarKind};
    if (message.address < base || message.address - base > size - message.bytes) continue;
    const Place place{.bar = bar, .offset = static_cast<std::uint32_t>(message.address - base)};
    if (bar == kCardBar || (message.bytes == 4 && place.offset % 4 == 0)) return place;
  }
  ++strays_;
  return std::nullopt;
}

std::uint64_t ProxyCard::bar_read(const ProxyMessage& message) {
  ++bar_reads_;
  std::uint64_t value = 0;
  const auto place = find(message);
  if (!place) return value;
  if (place->bar == kRegisterBar) return registers_->read_register(place->offset);
  card_.read(place->offset, std::as_writable_bytes(std::span(&value, 1)).first(message.bytes));
  return value;
}

void ProxyCard::bar_write(const ProxyMessage& message) {
  ++bar_writes_;
  const auto place = find(message);
  if (!place) return;
  if (place->bar == kRegisterBar)
    registers_->write_register(place->offset, static_cast<std::uint32_t>(message.value));
  else
    card_.write(place->offset, std::as_bytes(std::span(&message.value, 1)).first(message.bytes));
}

std::optional<std::uint64_t> ProxyCard::handle(const ProxyMessage& message) {
  const auto at = static_cast<std::uint32_t>(message.address);
  switch (message.command) {
    case ProxyCommand::kConfigRead:
      return config_read(at, message.bytes);
    case ProxyCommand::kConfigWrite:
      config_write(at, message.bytes, static_cast<std::uint32_t>(message.value));
      break;
    case ProxyCommand::kBarWrite:
      bar_write(message);
      break;
    case ProxyCommand::kBarRead:
      return bar_read(message);
    case ProxyCommand::kReset:
      reset();
      break;
    default:
      break;
  }
  if (!message.wants_answer()) return std::nullopt;
  return 0;
}

}  // namespace wherry::sim
