// SPDX-License-Identifier: Apache-2.0
// The programs on the soft core beside the engine: paper 000, sections 6.3 and 6.4.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sim/designs/card.hpp"
#include "sim/softcore/bus_trace.hpp"

namespace wherry::sim::designs {

/// The place of a core's code and data in the card's memory, beyond the range of the host's transfers.
inline constexpr std::uint32_t kCoreBase = 1U << 30;

/// The recording is of so many windows of the boot, each as long, evenly spread over it, one after another. 12 ms at
/// 100 MHz: as long as four channels need for 128 MiB.
inline constexpr std::uint32_t kLinuxWindows = 8;
inline constexpr std::uint64_t kWindowCycles = 1'200'000;
/// The window for the figures: the last one, in user space, which has the most accesses.
inline constexpr std::uint32_t kFigureWindow = kLinuxWindows - 1;

/// Linux' accesses from a window on, played at `core_hz` (its own clock: 100 MHz): an open loop.
[[nodiscard]] MakeNeighbour linux_traffic(std::uint32_t core_hz = 100'000'000, std::uint32_t window = kFigureWindow);
/// The access that a window begins with.
[[nodiscard]] std::size_t first_of_window(std::uint32_t window);
/// Its name tells whether it is the recording of a boot, or made from a boot's numbers.
[[nodiscard]] std::string_view linux_traffic_name();
[[nodiscard]] const softcore::BusTrace& linux_trace();

/// A firmware on PicoRV32 at 100 MHz, from the card's memory: a loop of NOPs, or a memory test. Empty functions where
/// the core's Verilog was not there to build with (pico_is_here() is false).
[[nodiscard]] bool pico_is_here() noexcept;
[[nodiscard]] MakeNeighbour nops();
[[nodiscard]] MakeNeighbour memory_test();

}  // namespace wherry::sim::designs
