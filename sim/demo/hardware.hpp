// SPDX-License-Identifier: Apache-2.0
// The demonstration's card and its functions, as its three neighbours see them: the NIC (DMA and tails), the host's
// part (registers) and the screen (counters).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kv/message.hpp"
#include "sim/bypass/card.hpp"

namespace wherry::sim {

/// Offsets in hdl/bypass/bypass_kv.sv: the functions' registers and kv_core's. The bypass core's come before them.
inline constexpr std::uint32_t kFunctionRegisters = 0x8000, kKvRegisters = 0xC000;

/// The length of the twin's rings. The RTL's rings report their length.
inline constexpr std::uint32_t kTwinEntries = 64;

struct ShownCounter {
  std::string name;
  std::uint64_t value = 0;
};

/// What the screen shows of the card.
struct HardwareReport {
  std::uint64_t frames_in = 0, frames_out = 0;  ///< from the NIC, and read by it
  std::uint64_t arp = 0, icmp = 0, kv = 0;      ///< answers
  std::uint64_t ignored = 0;                    ///< frames that neither kv nor echo answers
  std::uint64_t under_way = 0;                  ///< answers that the NIC has not read to the end
  std::uint64_t cycles = 0;                     ///< that were computed
  std::vector<ShownCounter> card;
};

class DemoHardware : public DmaTarget {
 public:
  /// For the host's part. An address without a register reads as ones.
  virtual std::uint32_t read_register(std::uint32_t offset) = 0;
  virtual void write_register(std::uint32_t offset, std::uint32_t value) = 0;
  /// Starts or stops a bypass card without registers. kUnsupported from a card that has registers.
  virtual Status run(bool on) = 0;
  /// Runs the work other than DMA. True: there is more work at once.
  virtual bool turn() = 0;
  /// The screen reads this, not the host's part.
  [[nodiscard]] virtual HardwareReport report() = 0;
};

/// The Verilated bypass_kv.sv, in which bypass core, kv core and echo are joined, and the card's memory.
[[nodiscard]] std::unique_ptr<DemoHardware> make_rtl_hardware();

/// The bypass core's software twin, the Verilated kv core, and echo in C++, for comparison. `setup` returns what the
/// host's part would write into the bypass core's registers. It is called when the host's part starts the card.
[[nodiscard]] std::unique_ptr<DemoHardware> make_twin_hardware(const kv::Endpoint& self,
                                                               std::function<CardSetup()> setup);

}  // namespace wherry::sim
