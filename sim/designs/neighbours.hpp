// SPDX-License-Identifier: Apache-2.0
// The programs that run on the soft core beside the engine: paper 000, sections 6.3 and 6.4.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sim/designs/card.hpp"
#include "sim/softcore/bus_trace.hpp"

namespace wherry::sim::designs {

/// The place of a core's code and data in the card's memory, beyond the range of the host's transfers.
inline constexpr std::uint32_t kCoreBase = 1U << 30;

/// The recording contains this many windows of the boot, of equal length and evenly spread over it. A window is 12 ms
/// at 100 MHz, as long as four channels need for 128 MiB.
inline constexpr std::uint32_t kLinuxWindows = 8;
inline constexpr std::uint64_t kWindowCycles = 1'200'000;
/// The window for the figures: the last one, in user space, with the most accesses.
inline constexpr std::uint32_t kFigureWindow = kLinuxWindows - 1;

/// Plays Linux' accesses from a window on, at `core_hz` (its own clock: 100 MHz), as an open loop.
[[nodiscard]] MakeNeighbour linux_traffic(std::uint32_t core_hz = 100'000'000, std::uint32_t window = kFigureWindow);
/// The index of a window's first access.
[[nodiscard]] std::size_t first_of_window(std::uint32_t window);
/// The name says whether this is the recording of a boot, or made from a boot's numbers.
[[nodiscard]] std::string_view linux_traffic_name();
[[nodiscard]] const softcore::BusTrace& linux_trace();

/// A firmware on PicoRV32 at 100 MHz that runs from the card's memory: a loop of NOPs, or a memory test. The functions
/// are empty if the core's Verilog was missing at build time (pico_is_here() is false).
[[nodiscard]] bool pico_is_here() noexcept;
[[nodiscard]] MakeNeighbour nops();
[[nodiscard]] MakeNeighbour memory_test();

}  // namespace wherry::sim::designs
