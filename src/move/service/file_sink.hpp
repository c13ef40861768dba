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

/// A thread for each file system (up to 16; more share one) writes the files there, in the order of publication: a disk
/// that is slow or hangs holds up nobody who writes to another. Each file goes into the directory that was opened with
/// its stream (StreamInfo::files): without a name at first, fsync, then its name, fsync of the directory. No file is
/// ever replaced. A file that was written counts its frame as read; a frame whose file failed stays unread, so that a
/// WhenFull::kWait stream holds it until somebody else reads it.
///
/// Nothing is dropped and nobody waits here: a stream that is kSinkQueue frames ahead of the disk gets no room for more
/// (Catalogue::make_room), so in the end its host waits; other streams go on. "arrow" is the Arrow IPC file format,
/// written from the frame's memory without a copy. "parquet" (Snappy) is encoded and compressed here; its frames are
/// checked in full first, since encoding follows every offset and index that the host sent.
class FileSink {
 public:
  using Writer = std::function<Result<std::uint64_t>(FramePtr, const SinkDirectory&)>;

  /// Takes the catalogue's sink hook. The catalogue must outlive the sink. `write`: for tests, what writes a file
  /// instead of write_frame_file.
  explicit FileSink(Catalogue& catalogue, Writer write = {});
  ~FileSink();
  FileSink(const FileSink&) = delete;
  FileSink& operator=(const FileSink&) = delete;

  /// Waits until nothing is queued. kDeadlineExceeded says how many frames are left.
  Status drain(std::chrono::milliseconds timeout);
  /// Gives the hook back and ends after the files in hand; frames still queued become errors (drain first). Files in
  /// hand get `patience` (negative: for ever). Then their frames become errors, too, their threads are left alone with
  /// what they use, and kDeadlineExceeded names one. Idempotent; not from two threads at once. The status stays
  /// readable.
  Status stop(std::chrono::milliseconds patience = std::chrono::milliseconds(-1));
  [[nodiscard]] FileSinkStatus status() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  ///< shared with the hook, which a publish may still be in, and with its threads
  Catalogue& catalogue_;
};

}  // namespace wherry::move
