// SPDX-License-Identifier: Apache-2.0 A file that appears complete and on disk, or not at all.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/fd.hpp"

namespace wherry {

/// How a file is written before it has its name. kUnnamed (O_TMPFILE) leaves nothing behind even if the process is
/// killed. If the file system does not support that, kNamed is used instead: ".wherry-<random>.part".
enum class Unfinished : std::uint8_t { kUnnamed, kNamed };

/// A file without a name, or with a temporary one, until keep() or replace(). Without either call it is removed.
class UnfinishedFile {
 public:
  /// `directory` must outlive it. If it cannot be made, fd() is -1 and errno is set. `mode`: less the umask.
  UnfinishedFile(const Fd& directory, Unfinished unfinished, mode_t mode);
  ~UnfinishedFile();
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  /// Gives it this name, on disk. False, with errno, if the disk or the directory refuses, or the name is taken.
  [[nodiscard]] bool keep(const std::string& name);
  /// The same, but replaces a file of that name, atomically.
  [[nodiscard]] bool replace(const std::string& name);

 private:
  [[nodiscard]] bool link(const std::string& name) const;
  void draw_name();

  const Fd& directory_;
  std::string name_;  ///< its own, while it has one
  Fd fd_;
};

}  // namespace wherry
