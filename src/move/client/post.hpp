// SPDX-License-Identifier: Apache-2.0
#pragma once
// The calls of a stream on its session: opening, and posting offloads.
#include <cstdint>

#include "base/hot.hpp"
#include "base/hot_memory.hpp"
#include "move/message.hpp"
#include "session/session_core.hpp"

namespace wherry::move {

/// Returns the agent's id of the stream. kDeadlineExceeded: the agent may still open it. A second request for that name
/// then gets the stream that the first request opened. Without a second request, the stream is closed when the late
/// answer arrives.
Result<std::uint32_t> open_stream(detail::SessionCore& session, OpenRequest request);

/// Posts an offload of `flat`, and sets the region ids of its buffers. `hints`: the regions that the last call found;
/// updated. `half`: which of a frame's two posts this is; buffers without an address belong to the other post. Returns
/// the ticket. kWouldBlock as for Stream::post.
WHERRY_HOT Result<std::uint64_t> post(detail::SessionCore& session, std::uint32_t stream, std::uint64_t rows,
                                      FlatOffload& flat, HotVector<std::uint32_t>& hints, const OffloadOptions& options,
                                      Half half = Half::kWhole);

/// The message that a bound step posts. The first message lists the buffers; later messages only name the binding.
struct Bound : InHotMemory {
  FlatOffload flat;
  HotVector<std::uint32_t> hints;  ///< of its hold
  std::uint64_t rows = 0;
  std::uint32_t hold = detail::kNoHold;
  bool told = false;  ///< the agent knows the buffers
};
/// Registers the buffers of `flat` that are not registered yet. They stay registered until the hold is dropped.
Status bind(detail::SessionCore& session, Bound& bound);
WHERRY_HOT Result<std::uint64_t> post(detail::SessionCore& session, std::uint32_t stream, Bound& bound,
                                      const OffloadOptions& options);

}  // namespace wherry::move
