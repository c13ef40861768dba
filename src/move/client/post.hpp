// SPDX-License-Identifier: Apache-2.0
// What a stream asks of its session: to be opened, and offloads.
#pragma once

#include <cstdint>

#include "base/hot.hpp"
#include "base/hot_memory.hpp"
#include "move/message.hpp"
#include "session/session_core.hpp"

namespace wherry::move {

/// The id that the agent gave the stream. kDeadlineExceeded: the agent may open it yet. Asked again for that name, it
/// hands out the stream that it opened; a stream that nobody asks for again is closed when its answer comes.
Result<std::uint32_t> open_stream(detail::SessionCore& session, OpenRequest request);

/// Posts an offload of `flat`, whose buffers get their regions' ids. `hints`: where they were found last time; kept.
/// The ticket; kWouldBlock as Stream::post.
WHERRY_HOT Result<std::uint64_t> post(detail::SessionCore& session, std::uint32_t stream, std::uint64_t rows,
                                      FlatOffload& flat, HotVector<std::uint32_t>& hints,
                                      const OffloadOptions& options);

/// What a step that was bound posts each time. It lists its buffers in the first message, and only names itself in the
/// following ones.
struct Bound : InHotMemory {
  FlatOffload flat;
  HotVector<std::uint32_t> hints;  ///< of its hold
  std::uint64_t rows = 0;
  std::uint32_t hold = detail::kNoHold;
  bool told = false;  ///< the agent knows the buffers
};
/// Registers the buffers of `flat` that nobody registered, until the hold is dropped.
Status bind(detail::SessionCore& session, Bound& bound);
WHERRY_HOT Result<std::uint64_t> post(detail::SessionCore& session, std::uint32_t stream, Bound& bound,
                                      const OffloadOptions& options);

}  // namespace wherry::move
