// SPDX-License-Identifier: Apache-2.0
// How items travel: in packets, which are messages of route (route_message.hpp) with this head and then items, back to
// back. All items of a packet have the same size. Further items are appended to a packet until it leaves.
#pragma once

#include <cstdint>

#include "wherry/route_message.hpp"

namespace wherry::route::convey {

struct PacketHead {
  static constexpr std::uint32_t kPiece = 1U << 31;  ///< part of an item that is too large for one packet

  std::uint32_t source = 0;  ///< rank, with or without kPiece
  std::uint32_t bytes = 0;   ///< of each item; an item of no bytes is alone in its packet. Of a piece: the whole item's

  [[nodiscard]] Rank rank() const noexcept { return source & ~kPiece; }
  [[nodiscard]] bool piece() const noexcept { return (source & kPiece) != 0; }
};
static_assert(sizeof(PacketHead) == 8);

/// Bytes from the start of the message to its first item.
inline constexpr std::size_t kBeforeItems = 8 + sizeof(PacketHead);

/// Acknowledges packets whose items have been pulled. The sender may send that many further bytes.
struct Credit {
  std::uint32_t epoch = 0;  ///< the session that they belong to
  Rank from = 0;
  std::uint64_t bytes = 0;
};

}  // namespace wherry::route::convey
