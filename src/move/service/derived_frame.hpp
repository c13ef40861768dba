// SPDX-License-Identifier: Apache-2.0
// Makes a frame of a derived stream from a record batch that the agent computed.
#pragma once

#include <arrow/type_fwd.h>

#include <functional>
#include <memory>

#include "fabric/arena.hpp"
#include "move/service/frame.hpp"

namespace wherry::move {

/// The frame holds the batch as a complete Arrow IPC stream. Its bodies are compressed if the pipeline of `stream`
/// requires that. Its stream, rows and memory are set. `make_room`: called if the arena is full; true: memory was
/// freed. OutOfMemory: no room now, in the arena or in `pool`, which temporarily holds compressed bodies.
/// CapacityError: the frame is larger than the arena.
arrow::Result<std::shared_ptr<Frame>> make_derived_frame(const std::shared_ptr<const StreamInfo>& stream,
                                                         const arrow::RecordBatch& batch, Arena& arena,
                                                         arrow::MemoryPool* pool,
                                                         const std::function<bool()>& make_room);

}  // namespace wherry::move
