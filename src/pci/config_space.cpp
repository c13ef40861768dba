// SPDX-License-Identifier: Apache-2.0
#include "pci/config_space.hpp"

namespace wherry::pci {
namespace {

constexpr std::size_t kStatus = 0x06, kCapabilityList = 0x34, kFirstBar = 0x10;
constexpr std::uint16_t kHasCapabilities = 1U << 4;  // of kStatus
constexpr std::uint8_t kExpressId = 0x10;
constexpr std::uint16_t kAcsId = 0x0D;
// A capability has at least 4 bytes (an extended one 8), so a list with more entries than this is a loop.
constexpr std::size_t kMostCapabilities = (kConfigClassic - kConfigHeader) / 4;
constexpr std::size_t kMostExtended = (kConfigExtended - kConfigClassic) / 8;
constexpr unsigned kBars = 6;

}  // namespace

std::uint8_t ConfigSpace::u8(std::size_t offset) const noexcept {
  return offset < bytes_.size() ? std::to_integer<std::uint8_t>(bytes_[offset]) : std::uint8_t{0xFF};
}

std::uint16_t ConfigSpace::u16(std::size_t offset) const noexcept {
  return static_cast<std::uint16_t>(u8(offset) | u8(offset + 1) << 8);
}

std::uint32_t ConfigSpace::u32(std::size_t offset) const noexcept {
  return u16(offset) | std::uint32_t{u16(offset + 2)} << 16;
}

std::optional<std::uint8_t> ConfigSpace::find(std::uint8_t id) const noexcept {
  if (!sees_capabilities() || (u16(kStatus) & kHasCapabilities) == 0) return std::nullopt;
  std::uint8_t at = u8(kCapabilityList) & 0xFC;  // the two low bits are reserved
  for (std::size_t count = 0; count < kMostCapabilities && at >= kConfigHeader; ++count) {
    const std::uint8_t found = u8(at);
    if (found == 0xFF) return std::nullopt;  // nothing answers there
    if (found == id) return at;
    at = u8(at + 1U) & 0xFC;
  }
  return std::nullopt;
}

std::optional<std::uint16_t> ConfigSpace::find_extended(std::uint16_t id) const noexcept {
  if (!sees_extended()) return std::nullopt;
  std::uint16_t at = kConfigClassic;
  for (std::size_t count = 0; count < kMostExtended && at >= kConfigClassic; ++count) {
    const std::uint32_t header = u32(at);
    if (header == 0 || header == 0xFFFF'FFFF) return std::nullopt;
    if ((header & 0xFFFF) == id) return at;
    at = static_cast<std::uint16_t>(header >> 20 & 0xFFC);
  }
  return std::nullopt;
}

std::optional<Acs> ConfigSpace::acs() const noexcept {
  const auto at = find_extended(kAcsId);
  // If the capability is in the last word, its registers lie beyond the end. They would read as all ones, that is, as
  // "everything on".
  if (!at || *at + 8U > size()) return std::nullopt;
  return Acs{.offset = *at, .capability = u16(*at + 4U), .control = u16(*at + 6U)};
}

std::optional<Express> ConfigSpace::express() const noexcept {
  const auto at = find(kExpressId);
  if (!at || *at + kExpressDeviceControl + 2U > kConfigClassic) return std::nullopt;
  return Express{.offset = *at,
                 .type = static_cast<PortType>(u16(*at + 2U) >> 4 & 0xF),
                 .device_control = u16(*at + std::size_t{kExpressDeviceControl})};
}

std::optional<BarRegister> ConfigSpace::bar(unsigned index) const noexcept {
  if (size() < kConfigHeader || is_bridge() || index >= kBars) return std::nullopt;
  for (unsigned i = 0; i <= index; ++i) {
    const std::uint32_t low = u32(kFirstBar + 4 * i);
    const bool memory = (low & 1) == 0;
    const bool wide = memory && (low >> 1 & 3) == 2 && i + 1 < kBars;
    if (i == index) {
      const std::uint64_t high = wide ? u32(kFirstBar + 4 * i + 4) : 0;
      const std::uint64_t address = high << 32 | (low & (memory ? ~std::uint32_t{0xF} : ~std::uint32_t{3}));
      if (address == 0) return std::nullopt;
      return BarRegister{.address = address, .memory = memory, .wide = wide, .prefetchable = memory && (low & 8) != 0};
    }
    if (wide) ++i;
  }
  return std::nullopt;
}

Window ConfigSpace::memory_window() const noexcept {
  if (!is_bridge()) return {};
  const std::uint64_t base = u16(0x20) & 0xFFF0U, limit = u16(0x22) & 0xFFF0U;
  return {base << 16, limit << 16 | 0xF'FFFF};
}

Window ConfigSpace::prefetchable_window() const noexcept {
  if (!is_bridge()) return {};
  std::uint64_t base = u16(0x24), limit = u16(0x26);
  const bool wide = (base & 0xF) == 1;
  base = (base & 0xFFF0) << 16;
  limit = (limit & 0xFFF0) << 16 | 0xF'FFFF;
  if (wide) {
    base |= std::uint64_t{u32(0x28)} << 32;
    limit |= std::uint64_t{u32(0x2C)} << 32;
  }
  return {base, limit};
}

}  // namespace wherry::pci
