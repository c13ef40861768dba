// SPDX-License-Identifier: Apache-2.0
// Frames of streams with a Sink as files: <directory>/<stream>-<sequence, 8 digits>.<arrow|parquet>, complete or not at
// all.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "move/service/catalogue.hpp"
#include "move/service/sink_directory.hpp"

namespace wherry::move {

struct FileSinkStatus {
  std::uint64_t files = 0;   ///< written
  std::uint64_t bytes = 0;   ///< of those files
  std::uint64_t errors = 0;  ///< frames that did not become a file
  std::uint64_t queued = 0;  ///< still to be written, the one being written included
  std::string last_error;    ///< names the file and the cause
  bool failing = false;      ///< the latest frame did not become a file
};

/// Each file system has a thread (up to 16; further file systems share them), which writes files in the order of
/// publication. So a slow or hanging disk does not delay streams on other disks. Each file goes into the directory that
/// was opened with its stream (StreamInfo::files). It has no name at first. After fsync it gets its name, and the
/// directory gets an fsync. No file is ever replaced. A written file counts its frame as read. If a file fails, its
/// frame remains unread, so a WhenFull::kWait stream keeps it until a reader has read it.
///
/// The sink does not drop frames and does not wait. A stream that is kSinkQueue frames ahead of its disk gets no room
/// for more (Catalogue::make_room). So its host waits, and other streams continue. "arrow" is the Arrow IPC file
/// format, written from the frame's memory without a copy. "parquet" (Snappy) is encoded and compressed here. Its
/// frames are fully checked first, because encoding follows all offsets and indices that the host sent.
class FileSink {
 public:
  using Writer = std::function<Result<std::uint64_t>(FramePtr, const SinkDirectory&)>;

  /// Sets the catalogue's sink hook. The catalogue must outlive the sink. `write`: for tests, replaces
  /// write_frame_file.
  explicit FileSink(Catalogue& catalogue, Writer write = {});
  ~FileSink();
  FileSink(const FileSink&) = delete;
  FileSink& operator=(const FileSink&) = delete;

  /// Waits until the queue is empty. kDeadlineExceeded: the message has the number of remaining frames.
  Status drain(std::chrono::milliseconds timeout);
  /// Removes the hook, and ends when the current files are written. Queued frames become errors, so call drain first.
  /// Files in progress get `patience` (negative: no limit). After that their frames become errors as well, their
  /// threads keep their memory, and kDeadlineExceeded names one file. Idempotent. Two threads must not call it at once.
  /// The status remains readable.
  Status stop(std::chrono::milliseconds patience = std::chrono::milliseconds(-1));
  [[nodiscard]] FileSinkStatus status() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  ///< shared with the hook, which a publish may still be in, and with its threads
  Catalogue& catalogue_;
};

}  // namespace wherry::move
