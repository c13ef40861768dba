// SPDX-License-Identifier: Apache-2.0
// Simulated time: whole picoseconds since the start. 2^63 ps are 106 days.
#pragma once

#include <cstdint>
#include <limits>

namespace wherry::sim::pcie {

using Time = std::int64_t;

inline constexpr Time kPicosecond = 1;
inline constexpr Time kNanosecond = 1'000;
inline constexpr Time kMicrosecond = 1'000'000;
inline constexpr Time kMillisecond = 1'000'000'000;
inline constexpr Time kSecond = 1'000'000'000'000;
/// Later than everything.
inline constexpr Time kNever = std::numeric_limits<Time>::max();

}  // namespace wherry::sim::pcie
