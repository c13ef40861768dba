// SPDX-License-Identifier: Apache-2.0
// The simplest network function: it returns each frame to its sender.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

#include "sim/bypass/card.hpp"

namespace wherry::sim {

/// Swaps the MAC addresses. In IPv4 without options it also swaps the IP addresses, and in UDP over it the ports. An
/// ICMP echo request becomes a reply (RFC 792), with a corrected checksum (RFC 1624). The swaps do not change the other
/// checksums. It reads only the first line, because all of its changes are there. Frames shorter than two MAC addresses
/// do not change.
void echo(std::span<std::byte> head) noexcept;

class InPlaceEcho final : public InPlaceFunction {
 public:
  bool forward(std::span<std::byte> head, std::uint32_t frame_bytes) override;
  /// Longer frames are dropped.
  void set_longest(std::uint32_t bytes) noexcept { longest_ = bytes; }

 private:
  std::uint32_t longest_ = kMaxFrameBytes;
};

/// A piece of a reply that the NIC cannot send whole: the echo's MAC addresses, this EtherType (IEEE 802, local
/// experiments), the piece's number and its byte count (two bytes each, high byte first), then those bytes of the echo.
/// The last piece is padded with zeros to the shortest frame.
inline constexpr std::uint16_t kPieceType = 0x88B6;
inline constexpr std::size_t kPieceHeader = 18;
inline constexpr std::size_t kShortestFrame = 60;

/// The same function on the stream: takes frames and puts them back.
class StreamEcho {
 public:
  explicit StreamEcho(StreamPort& port) : port_(port) {}
  /// Moves as many frames as possible. Frames for which the port has no room wait here.
  void turn();
  /// Forgets the waiting frames. Returns their number.
  std::size_t clear();
  /// Longer frames are cut. More than kShortestFrame.
  void set_longest(std::uint32_t bytes) noexcept { longest_ = bytes; }

 private:
  void cut(const Frame& frame);

  StreamPort& port_;
  std::uint32_t longest_ = kMaxFrameBytes;
  std::deque<Frame> waiting_;  ///< pieces of one frame
};

}  // namespace wherry::sim
