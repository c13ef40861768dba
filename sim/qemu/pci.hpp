// SPDX-License-Identifier: Apache-2.0
// What firmware does with a PCI Express tree: numbers its buses, places its memory BARs, opens its bridges' windows,
// and switches slots on and off. No I/O space, no ROMs, no prefetchable windows, no virtual functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "wherry/status.hpp"

namespace wherry::sim {

struct PciAddress {
  std::uint8_t bus = 0, device = 0, function = 0;
  friend bool operator==(const PciAddress&, const PciAddress&) = default;
};

/// Configuration space of all functions. What is not there reads as ones.
class ConfigSpace {
 public:
  virtual ~ConfigSpace() = default;
  /// Of registers that are a multiple of 4.
  virtual Result<std::uint32_t> read32(PciAddress at, std::uint32_t reg) = 0;
  virtual Status write32(PciAddress at, std::uint32_t reg, std::uint32_t value) = 0;
  virtual Status write16(PciAddress at, std::uint32_t reg, std::uint16_t value) = 0;
};

struct PciBar {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;  ///< 0: there is none
  bool wide = false;        ///< 64 bit: the next register holds the upper half
};

struct PciFunction {
  PciAddress at;
  PciAddress parent;  ///< the bridge that it is behind; itself on bus 0
  std::uint16_t vendor = 0, device = 0;
  bool bridge = false;
  std::array<PciBar, 6> bars;
};

/// Addresses that belong to BARs, from `next` on.
struct PciMemory {
  std::uint64_t next = 0;
  std::uint64_t end = 0;
};

/// Walks the tree from bus 0 on. All memory BARs are placed, and decoding and bus mastering are on.
/// kResourceExhausted: `memory` is too small.
Result<std::vector<PciFunction>> enumerate(ConfigSpace& config, PciMemory memory);

/// A function that came back empty (reset, plugged in again) gets the BARs that it had.
Status restore_bars(ConfigSpace& config, const PciFunction& function);

/// Bus mastering of a function.
Status set_bus_master(ConfigSpace& config, const PciFunction& function, bool on);

/// Power of the slot behind a port, by its Slot Control register. kNotFound: the port has no PCI Express capability.
Status set_slot_power(ConfigSpace& config, PciAddress port, bool on);

}  // namespace wherry::sim
