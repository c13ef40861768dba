// SPDX-License-Identifier: Apache-2.0
// The simplest network function: a frame goes back to where it came from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

#include "sim/bypass/card.hpp"

namespace wherry::sim {

/// Swaps the MAC addresses. Of IPv4 without options also the addresses; of UDP behind it the ports; an ICMP echo
/// request becomes a reply (RFC 792), its checksum is corrected (RFC 1624). Every swap leaves the other checksums as
/// they are. Looks at the first line only: everything that it changes lies there. Frames shorter than two MAC
/// addresses stay as they are.
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
  /// Moves what can be moved now; frames for which there is no room wait here.
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
