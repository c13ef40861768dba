// SPDX-License-Identifier: Apache-2.0
// Writes one frame as one file: formats and file system calls. file_sink.hpp has the threads and queues.
#pragma once

#include <cstdint>
#include <string>

#include "base/unfinished_file.hpp"
#include "move/service/frame.hpp"
#include "move/service/sink_directory.hpp"

namespace wherry::move {

/// The full path of the frame's file, for messages. The format of the stream's Sink must not be kNone.
std::string frame_file_path(const Frame& frame);

/// Makes the frame's file in `directory`. When this returns its size, the file is complete and on disk. Otherwise it
/// does not exist. No file is ever replaced: an existing name is an error. Blocks on the disk. Errors name the path.
Result<std::uint64_t> write_frame_file(FramePtr frame, const SinkDirectory& directory,
                                       Unfinished unfinished = Unfinished::kUnnamed);

}  // namespace wherry::move
