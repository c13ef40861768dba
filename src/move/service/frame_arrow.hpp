// SPDX-License-Identifier: Apache-2.0
// Frames as Arrow C++ objects, without a copy.
#pragma once

#include <memory>

#include "move/service/frame.hpp"

namespace arrow {
class Buffer;
class MemoryPool;
class RecordBatch;
}  // namespace arrow

namespace wherry::move {

/// The frame's IPC stream. The buffer, and everything that Arrow slices from it, keeps the frame (and so its memory)
/// alive.
std::shared_ptr<arrow::Buffer> frame_buffer(FramePtr frame);

/// The frame's batch: columns point into the frame's memory and keep it alive. Offsets and indices between the first
/// and the last come unchecked from the host, so call ValidateFull() before code that follows them. kInternal if Arrow
/// cannot read the frame. A derived frame may be compressed: its columns then lie in `pool` (null: Arrow's own), and
/// kResourceExhausted says that the pool has no room.
Result<std::shared_ptr<arrow::RecordBatch>> read_frame(FramePtr frame, arrow::MemoryPool* pool = nullptr);

}  // namespace wherry::move
