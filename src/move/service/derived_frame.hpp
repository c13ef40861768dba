// SPDX-License-Identifier: Apache-2.0
// A record batch that the agent computed, as a frame of a derived stream.
#pragma once

#include <arrow/type_fwd.h>

#include <functional>
#include <memory>

#include "fabric/arena.hpp"
#include "move/service/frame.hpp"

namespace wherry::move {

/// The frame holds the batch as a complete Arrow IPC stream, whose bodies are compressed if the pipeline of `stream`
/// says so. Its stream, rows and memory are set. `make_room`: the arena is full; true: something went. OutOfMemory:
/// there is no room now, in the arena or in `pool`, where compressed bodies lie meanwhile. CapacityError: the frame is
/// larger than the arena.
arrow::Result<std::shared_ptr<Frame>> make_derived_frame(const std::shared_ptr<const StreamInfo>& stream,
                                                         const arrow::RecordBatch& batch, Arena& arena,
                                                         arrow::MemoryPool* pool,
                                                         const std::function<bool()>& make_room);

}  // namespace wherry::move
