// SPDX-License-Identifier: Apache-2.0
// The directory in which UCX makes its segments of shared memory. Each has a name for a moment, from its creation until
// UCX has mapped it. A process that is killed in that moment leaves the segment and its memory behind. So each process
// has its own locked directory for segments, and each starting process removes directories without a lock.
#pragma once

#include <sys/types.h>
#include <memory>
#include <string>

#include "base/fd.hpp"

namespace wherry::fabric {

class SegmentDirectory {
 public:
  /// This process's directory, /dev/shm/wherry-<uid>/<random>. The first call creates it, after removing the
  /// directories of dead processes of this user. It is removed with the last reference. Null if it cannot be created
  /// (no /dev/shm, or another user created wherry-<uid> first); then UCX's default directory is used. Thread-safe.
  static std::shared_ptr<const SegmentDirectory> get(const std::string& shared_memory = "/dev/shm");
  ~SegmentDirectory();
  SegmentDirectory(const SegmentDirectory&) = delete;
  SegmentDirectory& operator=(const SegmentDirectory&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  SegmentDirectory() = default;
  static std::shared_ptr<const SegmentDirectory> make(const std::string& shared_memory);
  std::string path_, name_;
  Fd parent_;
  Fd held_;  ///< locked (flock) as long as the process lives, and its children that have not called exec
  pid_t owner_ = 0;
};

/// Removes the directories in `parent` that no process has locked, with their files. Returns their number.
std::size_t remove_abandoned_segments(const Fd& parent);

}  // namespace wherry::fabric
