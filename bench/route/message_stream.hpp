// SPDX-License-Identifier: Apache-2.0
// Messages of one size between two ranks, both ways at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "wherry/route.hpp"

namespace wherry::bench {

struct OfSize {
  double seconds = 0, transfer_bytes = 0, blocked_share = 0;
};

/// Sends `messages` messages of `size` bytes from `source` to the other of two ranks, both ways at once.
OfSize stream(route::Runtime& runtime, route::Handler<route::ByteView> take, route::ByteView source, std::size_t size,
              std::size_t messages);

/// The number of messages of a size: about `bytes` bytes in total, but 16 to `most` messages.
struct StreamEffort {
  std::size_t bytes, most;
  [[nodiscard]] std::size_t messages(std::size_t size) const { return std::clamp(bytes / size, std::size_t{16}, most); }
};

/// Runs stream() for each size, after a warm-up of a quarter as many messages. A collective.
std::vector<OfSize> stream_sizes(route::Runtime& runtime, std::span<const std::size_t> sizes, StreamEffort effort);

}  // namespace wherry::bench
