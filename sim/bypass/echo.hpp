// SPDX-License-Identifier: Apache-2.0
// The simplest network function: a frame goes back to where it came from.
#pragma once

#include <cstddef>
#include <cstdint>
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
};

/// The same by the stream: takes frames and puts them back.
class StreamEcho {
 public:
  explicit StreamEcho(StreamPort& port) : port_(port) {}
  /// Moves what can be moved now; a frame for which there is no room waits here.
  void turn();
  /// Forgets the frame that waits. How many there were.
  std::uint32_t clear();

 private:
  StreamPort& port_;
  std::optional<Frame> waiting_;
};

}  // namespace wherry::sim
