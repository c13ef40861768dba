// SPDX-License-Identifier: Apache-2.0
// The memory that a rank or an agent receives in: bells, then a ring for each source.
#pragma once

#include "route/ring.hpp"

namespace wherry::route {

struct InboxShape {
  std::uint32_t inputs = 0;
  RingShape ring;

  [[nodiscard]] constexpr std::size_t ring_at(std::size_t input) const noexcept {
    return Bells::bytes_for(inputs) + input * ring.bytes();
  }
  [[nodiscard]] constexpr std::size_t bytes() const noexcept { return ring_at(inputs); }
  friend constexpr bool operator==(InboxShape, InboxShape) noexcept = default;
};

}  // namespace wherry::route
