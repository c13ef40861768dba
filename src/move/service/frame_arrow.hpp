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

/// The frame's IPC stream. The buffer and all Arrow slices of it keep the frame and its memory
/// alive.
std::shared_ptr<arrow::Buffer> frame_buffer(FramePtr frame);

/// The frame's batch. Its columns point into the frame's memory and keep it alive. Only the first and last offset of a
/// column are checked; other offsets and indices come unchecked from the host, so call ValidateFull() before code that
/// follows them. kInternal: Arrow cannot read the frame. The columns of a compressed derived frame lie in `pool` (null:
/// Arrow's own pool). kResourceExhausted: the pool has no room.
Result<std::shared_ptr<arrow::RecordBatch>> read_frame(FramePtr frame, arrow::MemoryPool* pool = nullptr);

}  // namespace wherry::move
