// SPDX-License-Identifier: Apache-2.0
// The card of the demonstration, as its four neighbours see it: the NIC (DMA and tails), the function (frames), the
// host's part (registers) and the screen (counters).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/bypass/card.hpp"

namespace wherry::sim {

struct ShownCounter {
  std::string name;
  std::uint64_t value = 0;
};

class DemoCard : public DmaTarget, public StreamPort {
 public:
  virtual std::uint32_t read_register(std::uint32_t offset) = 0;
  virtual void write_register(std::uint32_t offset, std::uint32_t value) = 0;
  /// A card that has no registers: kUnsupported from one that has.
  virtual Status run(bool on) = 0;
  /// Read by the screen, not by the host's part.
  [[nodiscard]] virtual std::vector<ShownCounter> counters() = 0;
  /// Of its clock; 0: it has none.
  [[nodiscard]] virtual std::uint64_t cycles() const noexcept = 0;
};

/// The Verilated core.
[[nodiscard]] std::unique_ptr<DemoCard> make_rtl_card();

/// The core's software twin. `setup` gives what the host's part would write into registers; it is asked for when the
/// host's part starts the card.
[[nodiscard]] std::unique_ptr<DemoCard> make_twin_card(std::function<CardSetup()> setup);

}  // namespace wherry::sim
