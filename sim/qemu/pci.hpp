// SPDX-License-Identifier: Apache-2.0
// What firmware does with a PCI Express tree: numbers its buses, places its memory BARs, opens its bridges' windows,
// and switches slots on and off. It supports no I/O space, ROMs, prefetchable windows or virtual functions.
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

/// The configuration space of all functions. Functions that do not exist read as ones.
class ConfigSpace {
 public:
  virtual ~ConfigSpace() = default;
  /// Register numbers are multiples of 4.
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

/// Addresses for BARs, from `next` on.
struct PciMemory {
  std::uint64_t next = 0;
  std::uint64_t end = 0;
};

/// Walks the tree from bus 0 on. Places all memory BARs, and switches decoding and bus mastering on.
/// kResourceExhausted: `memory` is too small.
Result<std::vector<PciFunction>> enumerate(ConfigSpace& config, PciMemory memory);

/// Gives a function that lost its settings (by a reset, or plugged in again) the BARs that it had.
Status restore_bars(ConfigSpace& config, const PciFunction& function);

/// Bus mastering of a function.
Status set_bus_master(ConfigSpace& config, const PciFunction& function, bool on);

/// Switches the power of the slot behind a port, by Slot Control. kNotFound: the port has no PCI Express capability.
Status set_slot_power(ConfigSpace& config, PciAddress port, bool on);

}  // namespace wherry::sim
