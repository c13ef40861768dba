// SPDX-License-Identifier: Apache-2.0
// One frame as one file. Knows formats and the file system; file_sink.hpp knows threads and queues.
#pragma once

#include <cstdint>
#include <string>

#include "move/service/frame.hpp"

namespace wherry::move {

/// Where the frame's file belongs by its stream's Sink (whose format is not kNone).
std::string frame_file_path(const Frame& frame);

/// Writes frame_file_path(): it is there in full and on disk when this returns its size, or is not there (or as it was
/// before). Blocks on the disk. Errors name the path. Makes the directory if it is missing.
Result<std::uint64_t> write_frame_file(FramePtr frame);

}  // namespace wherry::move
