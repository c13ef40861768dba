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

/// Writes the frame's file into `directory` and returns its size when the file is complete and on disk. On an error the
/// file does not exist. An existing file is an error and is not replaced. Blocks on the disk. Errors name the path.
Result<std::uint64_t> write_frame_file(FramePtr frame, const SinkDirectory& directory,
                                       Unfinished unfinished = Unfinished::kUnnamed);

}  // namespace wherry::move
