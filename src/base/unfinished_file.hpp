// SPDX-License-Identifier: Apache-2.0
#pragma once
// A file that appears complete and on disk, or not at all.
#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/fd.hpp"

namespace wherry {

/// How a file exists until it gets its name. kUnnamed (O_TMPFILE) leaves nothing behind, even if the process is killed.
/// If the file system does not support it, kNamed is used: ".wherry-<random>.part".
enum class Unfinished : std::uint8_t { kUnnamed, kNamed };

/// A file with no name or a temporary name until keep() or replace(). Without such a call it is removed.
class UnfinishedFile {
 public:
  /// `directory` must outlive it. On failure fd() is -1 and errno is set. The umask reduces `mode`.
  UnfinishedFile(const Fd& directory, Unfinished unfinished, mode_t mode);
  ~UnfinishedFile();
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  /// Syncs the file and gives it this name. False with errno: a disk or directory error, or the name exists.
  [[nodiscard]] bool keep(const std::string& name);
  /// Like keep(), but atomically replaces a file of that name.
  [[nodiscard]] bool replace(const std::string& name);

 private:
  [[nodiscard]] bool link(const std::string& name) const;
  void draw_name();

  const Fd& directory_;
  std::string name_;  ///< its own, while it has one
  Fd fd_;
};

}  // namespace wherry
