// SPDX-License-Identifier: Apache-2.0
// Where the agent writes a stream's files: a directory of its file system that a client names. It is opened with the
// stream, and files are created relative to that handle, so a later replacement does not redirect them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/fd.hpp"
#include "wherry/move.hpp"
#include "wherry/status.hpp"

namespace wherry::move {

/// "<stream>-<sequence, 8 digits or more>.<arrow|parquet>"; the sink's format is not kNone.
std::string sink_file_name(const std::string& stream, std::uint64_t sequence, Sink::Format format);

class SinkDirectory {
 public:
  /// Opens the directory for the files of `stream`, and creates it if it is missing. With a root: an
  /// absolute path at or below the root, or a path relative to it. No component beneath the root may
  /// be a symbolic link. Without a root: an absolute path that this user may write to. Symbolic
  /// links in it must belong to this user or root. kPermissionDenied: it leads out of the root, or
  /// through a link; kUnavailable: the root is missing; kInvalidArgument: not a directory, or the
  /// stream's name is too long for a file there (the message has the limit); kAlreadyExists: the
  /// first file of an earlier stream of that name is there; kResourceExhausted: too many directories
  /// are open.
  static Result<std::shared_ptr<const SinkDirectory>> open(const std::string& root, const std::string& directory,
                                                           const std::string& stream, Sink::Format format);

  [[nodiscard]] const Fd& fd() const noexcept { return *fd_; }
  /// The file system of the directory (st_dev).
  [[nodiscard]] dev_t device() const noexcept { return device_; }
  /// The absolute path as the client named it; for messages.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  SinkDirectory() = default;
  std::shared_ptr<const Fd> fd_;  ///< shared by all streams with files in this directory
  std::string path_;
  dev_t device_ = 0;
};

}  // namespace wherry::move
