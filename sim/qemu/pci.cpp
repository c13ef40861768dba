// SPDX-License-Identifier: Apache-2.0
#include "sim/qemu/pci.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/try.hpp"

namespace wherry::sim {
namespace {

// PCI Local Bus 3.0, 6.1 and PCI-to-PCI Bridge 1.2, 3.2: configuration headers.
constexpr std::uint32_t kId = 0x00;
constexpr std::uint32_t kCommand = 0x04;
constexpr std::uint32_t kHeaderType = 0x0C;  ///< in bits 23:16
constexpr std::uint32_t kBars = 0x10;
constexpr std::uint32_t kBusNumbers = 0x18;  ///< primary, secondary, subordinate
constexpr std::uint32_t kMemoryWindow = 0x20;
constexpr std::uint32_t kPrefetchWindow = 0x24;
constexpr std::uint32_t kCapabilities = 0x34;
constexpr std::uint32_t kNothing = 0xFFFF'FFFF;
constexpr std::uint32_t kClosed = 0x0000'FFF0;  ///< a window whose limit is below its base
constexpr std::uint16_t kMemorySpace = 0x2;
constexpr std::uint16_t kBusMaster = 0x4;
constexpr std::uint64_t kWindowGrain = 1U << 20;
constexpr std::uint64_t kPage = 4096;
constexpr unsigned kDevices = 32;
constexpr unsigned kFunctions = 8;

// PCI Express Base 4.0, 7.5.3: the capability, and Slot Control in it.
constexpr std::uint8_t kExpress = 0x10;
constexpr std::uint32_t kSlotControl = 0x18;
constexpr std::uint16_t kPowerOff = 1U << 10;
constexpr std::uint16_t kIndicatorOn = 1U << 8;
constexpr std::uint16_t kIndicatorOff = 3U << 8;

std::uint64_t align(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

Status write_bar(ConfigSpace& config, PciAddress at, std::uint32_t number, const PciBar& bar) {
  const std::uint32_t reg = kBars + 4 * number;
  WHERRY_TRY(config.write32(at, reg, static_cast<std::uint32_t>(bar.address)));
  if (!bar.wide) return {};
  return config.write32(at, reg + 4, static_cast<std::uint32_t>(bar.address >> 32));
}

class Enumerator {
 public:
  Enumerator(ConfigSpace& config, PciMemory memory) : config_(config), memory_(memory) {}

  Status scan(std::uint8_t bus, std::optional<PciAddress> parent) {
    for (unsigned device = 0; device < kDevices; ++device)
      for (unsigned function = 0; function < kFunctions; ++function) {
        const PciAddress at{bus, static_cast<std::uint8_t>(device), static_cast<std::uint8_t>(function)};
        WHERRY_ASSIGN(const std::uint32_t id, config_.read32(at, kId));
        if (id == kNothing) {
          if (function == 0) break;
          continue;
        }
        WHERRY_ASSIGN(const std::uint32_t header, config_.read32(at, kHeaderType));
        PciFunction found{.at = at,
                          .parent = parent.value_or(at),
                          .vendor = static_cast<std::uint16_t>(id),
                          .device = static_cast<std::uint16_t>(id >> 16),
                          .bridge = (header >> 16 & 0x7F) == 1};
        if (found.bridge) WHERRY_TRY(open_bridge(at));
        WHERRY_TRY(place_bars(found));
        WHERRY_TRY(config_.write16(at, kCommand, kMemorySpace | kBusMaster));
        functions_.push_back(found);
        if (function == 0 && (header >> 23 & 1) == 0) break;  // the only function of its device
      }
    return {};
  }

  std::vector<PciFunction> take() { return std::move(functions_); }

 private:
  Status open_bridge(PciAddress at) {
    const std::uint8_t secondary = ++last_bus_;
    const auto numbers = [&](std::uint32_t subordinate) {
      return config_.write32(at, kBusNumbers, at.bus | std::uint32_t{secondary} << 8 | subordinate << 16);
    };
    WHERRY_TRY(numbers(0xFF));
    memory_.next = align(memory_.next, kWindowGrain);
    const std::uint64_t base = memory_.next;
    WHERRY_TRY(scan(secondary, at));
    memory_.next = align(memory_.next, kWindowGrain);
    WHERRY_TRY(numbers(last_bus_));
    const auto window = static_cast<std::uint32_t>((base >> 16 & 0xFFF0) | ((memory_.next - 1) & 0xFFF0'0000));
    WHERRY_TRY(config_.write32(at, kMemoryWindow, memory_.next == base ? kClosed : window));
    return config_.write32(at, kPrefetchWindow, kClosed);
  }

  Status place_bars(PciFunction& function) {
    const unsigned count = function.bridge ? 2 : 6;
    for (unsigned i = 0; i < count; ++i) {
      const std::uint32_t reg = kBars + 4 * i;
      WHERRY_TRY(config_.write32(function.at, reg, kNothing));
      WHERRY_ASSIGN(const std::uint32_t low, config_.read32(function.at, reg));
      if (low == 0 || low == kNothing || (low & 1) != 0) continue;  // none, or I/O space
      PciBar& bar = function.bars[i];
      bar.wide = (low & 6) == 4;
      std::uint64_t mask = 0xFFFF'FFFF'0000'0000 | (low & ~0xFU);
      if (bar.wide) {
        WHERRY_TRY(config_.write32(function.at, reg + 4, kNothing));
        WHERRY_ASSIGN(const std::uint32_t high, config_.read32(function.at, reg + 4));
        mask = std::uint64_t{high} << 32 | (low & ~0xFU);
      }
      bar.bytes = ~mask + 1;
      bar.address = align(memory_.next, std::max(bar.bytes, kPage));
      memory_.next = bar.address + bar.bytes;
      if (memory_.next > memory_.end || memory_.next < bar.address)
        return {StatusCode::kResourceExhausted, fmt::format("no room for a BAR of {} bytes", bar.bytes)};
      WHERRY_TRY(write_bar(config_, function.at, i, bar));
      if (bar.wide) ++i;
    }
    return {};
  }

  ConfigSpace& config_;
  PciMemory memory_;
  std::uint8_t last_bus_ = 0;
  std::vector<PciFunction> functions_;
};

Result<std::uint32_t> express_capability(ConfigSpace& config, PciAddress at) {
  WHERRY_ASSIGN(std::uint32_t next, config.read32(at, kCapabilities));
  next &= 0xFC;
  for (int i = 0; next != 0 && i < 48; ++i) {  // more do not fit
    WHERRY_ASSIGN(const std::uint32_t header, config.read32(at, next));
    if ((header & 0xFF) == kExpress) return next;
    next = header >> 8 & 0xFC;
  }
  return Status(StatusCode::kNotFound,
                fmt::format("the port {:02x}:{:02x}.{} has no PCI Express capability", at.bus, at.device, at.function));
}

}  // namespace

Result<std::vector<PciFunction>> enumerate(ConfigSpace& config, PciMemory memory) {
  Enumerator enumerator(config, memory);
  WHERRY_TRY(enumerator.scan(0, std::nullopt));
  return enumerator.take();
}

Status restore_bars(ConfigSpace& config, const PciFunction& function) {
  for (std::uint32_t i = 0; i < function.bars.size(); ++i)
    if (function.bars[i].bytes != 0) WHERRY_TRY(write_bar(config, function.at, i, function.bars[i]));
  return config.write16(function.at, kCommand, kMemorySpace | kBusMaster);
}

Status set_bus_master(ConfigSpace& config, const PciFunction& function, bool on) {
  return config.write16(function.at, kCommand, on ? kMemorySpace | kBusMaster : kMemorySpace);
}

Status set_slot_power(ConfigSpace& config, PciAddress port, bool on) {
  WHERRY_ASSIGN(const std::uint32_t capability, express_capability(config, port));
  return config.write16(port, capability + kSlotControl, on ? kIndicatorOn : kPowerOff | kIndicatorOff);
}

}  // namespace wherry::sim
