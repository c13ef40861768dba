// SPDX-License-Identifier: Apache-2.0
// How items travel: a message of route (route_message.hpp) whose payload is this head and then items, back to back. All
// items of a packet have one size. As long as a packet has not left, further items for its rank are written behind it.
#pragma once

#include <cstdint>

#include "wherry/route_message.hpp"

namespace wherry::route::convey {

struct PacketHead {
  static constexpr std::uint32_t kPiece = 1U << 31;  ///< part of an item that is too large for one packet

  std::uint32_t source = 0;  ///< rank, and perhaps kPiece
  std::uint32_t bytes = 0;   ///< of an item; one of no bytes is alone in its packet. Of a piece: the whole item's

  [[nodiscard]] Rank rank() const noexcept { return source & ~kPiece; }
  [[nodiscard]] bool piece() const noexcept { return (source & kPiece) != 0; }
};
static_assert(sizeof(PacketHead) == 8);

/// From the start of the message to its first item.
inline constexpr std::size_t kBeforeItems = 8 + sizeof(PacketHead);

/// The receiver has done with packets: more may be on their way.
struct Credit {
  std::uint32_t epoch = 0;  ///< of the session that they belonged to
  Rank from = 0;
  std::uint64_t bytes = 0;
};

}  // namespace wherry::route::convey
