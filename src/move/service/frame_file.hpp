// SPDX-License-Identifier: Apache-2.0
// One frame as one file. Knows formats and the file system; file_sink.hpp knows threads and queues.
#pragma once

#include <cstdint>
#include <string>

#include "base/unfinished_file.hpp"
#include "move/service/frame.hpp"
#include "move/service/sink_directory.hpp"

namespace wherry::move {

/// The frame's file by its stream's Sink (whose format is not kNone), complete; for messages.
std::string frame_file_path(const Frame& frame);

/// Makes the frame's file in `directory`: it is there in full and on disk when this returns its size, or is not there.
/// No file is ever replaced: where the name is taken, that is the error. Blocks on the disk. Errors name the path.
Result<std::uint64_t> write_frame_file(FramePtr frame, const SinkDirectory& directory,
                                       Unfinished unfinished = Unfinished::kUnnamed);

}  // namespace wherry::move
