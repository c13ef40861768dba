// SPDX-License-Identifier: Apache-2.0
// What runs on the soft core beside the engine: paper 000, sections 6.3 and 6.4.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/designs/card.hpp"
#include "sim/softcore/bus_trace.hpp"

namespace wherry::sim::designs {

/// Where a core's code and data lie in the card's memory: beyond what the host's transfers touch.
inline constexpr std::uint32_t kCoreBase = 1U << 30;

/// Linux' accesses, played again and again at `core_hz` (its own clock: 100 MHz): an open loop.
[[nodiscard]] MakeNeighbour linux_traffic(std::uint32_t core_hz = 100'000'000);
/// Its name says what it is: the recording of a boot, or made by numbers of one.
[[nodiscard]] std::string_view linux_traffic_name();
[[nodiscard]] const softcore::BusTrace& linux_trace();

/// A firmware on PicoRV32 at 100 MHz, from the card's memory: a loop of NOPs, or a memory test. Empty functions where
/// the core's Verilog was not there to build with (pico_is_here() is false).
[[nodiscard]] bool pico_is_here() noexcept;
[[nodiscard]] MakeNeighbour nops();
[[nodiscard]] MakeNeighbour memory_test();

}  // namespace wherry::sim::designs
