// SPDX-License-Identifier: Apache-2.0
// The simplest network function: a frame goes back to where it came from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

#include "sim/bypass/card.hpp"

namespace wherry::sim {

/// Swaps the MAC addresses. For IPv4 without options it also swaps the addresses, and for UDP behind it the ports. An
/// ICMP echo request becomes a reply (RFC 792), with a corrected checksum (RFC 1624). No swap changes the other
/// checksums. It reads only the first line, because all of its changes lie there. Frames shorter than two MAC addresses
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

/// A reply that is cut because the NIC cannot send it whole: the echo's MAC addresses, this EtherType (IEEE 802, local
/// experiments), the piece's number and the bytes in it (two bytes each, the higher first), and those bytes of the
/// echo. The last piece is filled up with zeros to the shortest frame.
inline constexpr std::uint16_t kPieceType = 0x88B6;
inline constexpr std::size_t kPieceHeader = 18;
inline constexpr std::size_t kShortestFrame = 60;

/// The same by the stream: takes frames and puts them back.
class StreamEcho {
 public:
  explicit StreamEcho(StreamPort& port) : port_(port) {}
  /// Moves as much as possible. Frames without room wait here.
  void turn();
  /// Forgets the frames that wait. How many there were.
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
