// SPDX-License-Identifier: Apache-2.0
#include "base/unfinished_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <stdio.h>
#include <unistd.h>

#include <random>

#include "base/secure_directory.hpp"

namespace wherry {

UnfinishedFile::UnfinishedFile(const Fd& directory, Unfinished unfinished, mode_t mode) : directory_(directory) {
  constexpr int kFlags = O_WRONLY | O_CLOEXEC;
  if (unfinished == Unfinished::kUnnamed) fd_ = Fd(::openat(directory.get(), ".", O_TMPFILE | kFlags, mode));
  if (fd_) return;
  // Some file systems, such as NFS, lack O_TMPFILE. The name has 64 random bits, and O_EXCL keeps it unique.
  draw_name();
  fd_ = Fd(::openat(directory.get(), name_.c_str(), O_CREAT | O_EXCL | O_NOFOLLOW | kFlags, mode));
  if (!fd_) name_.clear();
}

UnfinishedFile::~UnfinishedFile() {
  if (!name_.empty()) ::unlinkat(directory_.get(), name_.c_str(), 0);
}

void UnfinishedFile::draw_name() {
  std::random_device random;
  name_ = fmt::format(".wherry-{:08x}{:08x}.part", random(), random());
}

bool UnfinishedFile::link(const std::string& name) const {
  const std::string self = fmt::format("/proc/self/fd/{}", fd());
  return ::linkat(AT_FDCWD, self.c_str(), directory_.get(), name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

bool UnfinishedFile::keep(const std::string& name) {
  if (::fsync(fd()) != 0) return false;
  if (name_.empty()) {
    if (!link(name)) return false;
  } else {
    if (!rename_to_free_name(directory_, name_, name)) return false;
    name_.clear();
  }
  return ::fsync(directory_.get()) == 0;
}

bool UnfinishedFile::replace(const std::string& name) {
  if (::fsync(fd()) != 0) return false;
  if (name_.empty()) {  // a link replaces nothing, so that it needs a name to be renamed from
    draw_name();
    if (!link(name_)) {
      name_.clear();
      return false;
    }
  }
  if (::renameat(directory_.get(), name_.c_str(), directory_.get(), name.c_str()) != 0) return false;
  name_.clear();
  return ::fsync(directory_.get()) == 0;
}

}  // namespace wherry
