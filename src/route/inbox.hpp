// SPDX-License-Identifier: Apache-2.0
// The memory in which a hop receives: doorbells, its presence, then a ring for each previous hop.
#pragma once

#include "route/presence.hpp"
#include "route/ring.hpp"

namespace wherry::route {

struct InboxShape {
  std::uint32_t inputs = 0;  ///< rings
  RingShape ring;

  [[nodiscard]] constexpr std::size_t ring_at(std::size_t input) const noexcept {
    return presence_at() + Presence::kBytes + input * ring.bytes();
  }
  [[nodiscard]] constexpr std::size_t presence_at() const noexcept { return Doorbells::bytes_for(inputs); }
  [[nodiscard]] constexpr std::size_t bytes() const noexcept { return ring_at(inputs); }
  friend constexpr bool operator==(InboxShape, InboxShape) noexcept = default;
};

}  // namespace wherry::route
