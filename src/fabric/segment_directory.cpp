// SPDX-License-Identifier: Apache-2.0
#include "fabric/segment_directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <mutex>
#include <random>
#include <string_view>
#include <vector>

#include "base/secure_directory.hpp"
#include "base/user.hpp"

namespace wherry::fabric {
namespace {

constexpr std::string_view kPrefix = "p-";

/// The names in an open directory, without "." and "..".
std::vector<std::string> names_in(const Fd& directory) {
  std::vector<std::string> names;
  DIR* const list = fdopendir(::openat(directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (list == nullptr) return names;
  while (const dirent* const entry = readdir(list)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  closedir(list);
  return names;
}

/// Whether the name still denotes the open directory.
bool is_named(const Fd& parent, const std::string& name, const Fd& directory) {
  struct stat named{};
  struct stat opened{};
  return ::fstatat(parent.get(), name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         ::fstat(directory.get(), &opened) == 0 && named.st_ino == opened.st_ino && named.st_dev == opened.st_dev;
}

/// The caller holds the lock.
bool remove_directory(const Fd& parent, const std::string& name, const Fd& directory) {
  if (!is_named(parent, name, directory)) return false;
  for (const std::string& file : names_in(directory)) ::unlinkat(directory.get(), file.c_str(), 0);
  return ::unlinkat(parent.get(), name.c_str(), AT_REMOVEDIR) == 0;
}

}  // namespace

std::size_t remove_abandoned_segments(const Fd& parent) {
  std::size_t removed = 0;
  for (const std::string& name : names_in(parent)) {
    if (!name.starts_with(kPrefix)) continue;
    const Fd directory(::openat(parent.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (directory && ::flock(directory.get(), LOCK_EX | LOCK_NB) == 0 && remove_directory(parent, name, directory))
      ++removed;
  }
  return removed;
}

std::shared_ptr<const SegmentDirectory> SegmentDirectory::make(const std::string& shared_memory) {
  const std::string place = fmt::format("{}/wherry-{}", shared_memory, user_outside());
  struct stat info{};
  if (::stat(shared_memory.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return nullptr;
  auto parent = secure_directory(place, 0700, "");
  if (!parent) return nullptr;
  (void)remove_abandoned_segments(*parent);
  const std::shared_ptr<SegmentDirectory> made(new SegmentDirectory);
  made->parent_ = *std::move(parent);
  made->owner_ = getpid();
  std::random_device random;
  // Before this process locks the directory, another process may treat it as abandoned.
  for (int tries = 0; tries < 100; ++tries) {
    made->name_ = fmt::format("{}{:08x}{:08x}", kPrefix, random(), random());
    if (::mkdirat(made->parent_.get(), made->name_.c_str(), 0700) != 0) {
      if (errno == EEXIST) continue;
      return nullptr;
    }
    (void)::fchmodat(made->parent_.get(), made->name_.c_str(), 0700, 0);  // whatever the umask; the parent is ours
    made->held_ = Fd(::openat(made->parent_.get(), made->name_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!made->held_ && errno == ENOENT) continue;
    if (!made->held_ || ::flock(made->held_.get(), LOCK_EX) != 0) {
      ::unlinkat(made->parent_.get(), made->name_.c_str(), AT_REMOVEDIR);
      return nullptr;
    }
    if (!is_named(made->parent_, made->name_, made->held_)) continue;
    made->path_ = fmt::format("{}/{}", place, made->name_);
    return made;
  }
  return nullptr;
}

std::shared_ptr<const SegmentDirectory> SegmentDirectory::get(const std::string& shared_memory) {
  static std::mutex mutex;
  static std::weak_ptr<const SegmentDirectory> known;
  const std::lock_guard lock(mutex);
  if (auto same = known.lock(); same != nullptr && same->owner_ == getpid()) return same;
  auto made = make(shared_memory);
  known = made;
  return made;
}

SegmentDirectory::~SegmentDirectory() {
  if (held_ && owner_ == getpid()) remove_directory(parent_, name_, held_);
}

}  // namespace wherry::fabric
