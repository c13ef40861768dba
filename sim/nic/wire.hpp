// SPDX-License-Identifier: Apache-2.0
// Ethernet as bits in time: the interface of a receiver, and how long a frame occupies the wire.
//
// A frame has the bytes from the destination address on, without FCS; the wire adds preamble and SFD (8 bytes), padding
// to 60, FCS (4) and the least gap (12): IEEE 802.3-2018, 3.1.1, 4.4.2. No pause frames.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sim/pcie/time.hpp"

namespace wherry::sim::nic {

using pcie::Time;

inline constexpr std::uint32_t kPreambleBytes = 8;
inline constexpr std::uint32_t kGapBytes = 12;
inline constexpr std::uint32_t kFcsBytes = 4;
inline constexpr std::uint32_t kShortestFrame = 60;  ///< without FCS

/// A frame's counted length: with padding and FCS.
[[nodiscard]] constexpr std::uint32_t padded(std::size_t bytes) noexcept {
  return std::max(static_cast<std::uint32_t>(bytes), kShortestFrame) + kFcsBytes;
}
/// Exact for 1, 2.5, 10, 25, 40 and 100 Gbit/s.
[[nodiscard]] constexpr Time byte_time(std::uint32_t mbits) noexcept { return 8'000'000 / Time{mbits}; }
/// Time from the preamble's first bit to the FCS's last bit.
[[nodiscard]] constexpr Time frame_time(std::size_t bytes, std::uint32_t mbits) noexcept {
  return (kPreambleBytes + padded(bytes)) * byte_time(mbits);
}
/// Time from one frame's first bit to the next one's, at line rate.
[[nodiscard]] constexpr Time slot_time(std::size_t bytes, std::uint32_t mbits) noexcept {
  return frame_time(bytes, mbits) + kGapBytes * byte_time(mbits);
}

/// Takes frames.
class WireEnd {
 public:
  /// A frame's last bit arrives now. `frame` is valid during the call. `fcs_good`: its check sequence is right.
  virtual void on_frame(std::span<const std::byte> frame, bool fcs_good) = 0;

 protected:
  ~WireEnd() = default;
};

}  // namespace wherry::sim::nic
