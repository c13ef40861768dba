// SPDX-License-Identifier: Apache-2.0
// Messages of one size between two ranks, both ways at once.
#pragma once

#include <cstddef>

#include "wherry/route.hpp"

namespace wherry::bench {

struct OfSize {
  double seconds = 0, transfer_bytes = 0, blocked_share = 0;
};

/// `messages` of `size` bytes, out of `source`, to the other of two ranks, both ways at once.
OfSize stream(route::Runtime& runtime, route::Handler<route::ByteView> take, route::ByteView source, std::size_t size,
              std::size_t messages);

}  // namespace wherry::bench
