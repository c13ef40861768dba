// SPDX-License-Identifier: Apache-2.0
// The time of a frame on 100 Gbit/s Ethernet.
#pragma once

#include <algorithm>
#include <cstddef>

namespace wherry::kv::rtl {

inline constexpr std::size_t kLinkBytesPerCycle = 50;  ///< 100 Gbit/s, 4 ns
inline constexpr std::size_t kShortestFrame = 60;      ///< without its check sequence

/// Counts preamble, the frame padded to the shortest, check sequence, and the gap to the next.
[[nodiscard]] constexpr std::size_t wire_bytes(std::size_t frame) noexcept {
  return 8 + std::max(frame, kShortestFrame) + 4 + 12;
}

}  // namespace wherry::kv::rtl
