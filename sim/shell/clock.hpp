// SPDX-License-Identifier: Apache-2.0
// The shell's two clocks, as simulated time.
#pragma once

#include <cstdint>

#include "sim/pcie/time.hpp"

namespace wherry::sim::shell {

using pcie::Time;

/// Its edges are at multiples of the cycle since the start of the simulation.
class Clock {
 public:
  constexpr explicit Clock(std::int64_t hz) : hz_(hz) {}
  /// The time of `count` cycles, which must be below 9 million.
  [[nodiscard]] constexpr Time cycles(std::int64_t count) const noexcept { return count * pcie::kSecond / hz_; }
  /// The first edge at or after `at`.
  [[nodiscard]] constexpr Time edge(Time at) const noexcept {
    std::int64_t count = at * (hz_ / 1000) / (pcie::kSecond / 1000);
    while (cycles(count) < at) ++count;
    return cycles(count);
  }

 private:
  std::int64_t hz_;
};

/// given: the PCIe user clock of a Gen3 x16 core with 512 bit, in which QDMA and the 250 MHz box run (PG302,
/// "Clocking"; OpenNIC's README).
inline constexpr Clock kShellClock{250'000'000};
/// given: the 100G CMAC's user clock, 322.265625 MHz (PG203, "Clocking").
inline constexpr Clock kCmacClock{322'265'625};

}  // namespace wherry::sim::shell
