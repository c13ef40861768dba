// SPDX-License-Identifier: Apache-2.0
#include "move/service/sink_directory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "base/secure_directory.hpp"
#include "base/try.hpp"

namespace wherry::move {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kMode = 0755;  // less the umask

/// The open directories. All streams with files in one directory share a descriptor. Any thread.
class Handles {
 public:
  Result<std::shared_ptr<const Fd>> share(Fd fd, const std::string& path) {
    struct stat info{};
    if (::fstat(fd.get(), &info) != 0) return Status(StatusCode::kInternal, path + ": " + std::strerror(errno));
    const std::lock_guard lock(mutex_);
    std::erase_if(open_, [](const auto& entry) { return entry.second.expired(); });
    std::weak_ptr<const Fd>& known = open_[{info.st_dev, info.st_ino}];
    if (auto same = known.lock()) return same;
    if (open_.size() > most()) {
      open_.erase({info.st_dev, info.st_ino});
      return Status(StatusCode::kResourceExhausted,
                    fmt::format("the agent writes files into {} directories already: close streams first, or raise its "
                                "limit of open files (ulimit -n), of which directories may take a quarter",
                                open_.size()));
    }
    auto made = std::make_shared<const Fd>(std::move(fd));
    known = made;
    return made;
  }

 private:
  /// Sinks may use a quarter of the descriptors. The rest is for clients, readers and the agent itself.
  static std::size_t most() {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 1024;
    return std::max<std::size_t>(limit.rlim_cur / 4, 4);
  }

  std::mutex mutex_;
  std::map<std::pair<dev_t, ino_t>, std::weak_ptr<const Fd>> open_;
};

Handles& handles() {
  static Handles all;
  return all;
}

Status refused(StatusCode code, const std::string& directory, const std::string& why) {
  return {code, fmt::format("sink directory {}: {}", directory, why)};
}

/// Opens a file or directory beneath `root` without following a symbolic link.
Fd open_beneath(const Fd& root, const fs::path& path, std::uint64_t flags) {
  open_how how{};
  how.flags = flags | O_DIRECTORY | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  // EAGAIN: a directory was renamed during the look-up, so try again.
  for (int tries = 0;; ++tries) {
    const auto fd = static_cast<int>(syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof how));
    if (fd >= 0 || errno != EAGAIN || tries == 100) return Fd(fd);
  }
}

/// The path relative to the root, without "." and "..". nullopt: it is not beneath the root.
std::optional<fs::path> beneath(const fs::path& root, const fs::path& path) {
  const fs::path normal = path.lexically_normal();
  if (normal.is_relative()) return *normal.begin() == ".." ? std::nullopt : std::optional(normal);
  std::error_code error;
  for (const fs::path& way : {fs::absolute(root).lexically_normal(), fs::canonical(root, error)}) {
    const fs::path rest = normal.lexically_relative(way);
    if (!rest.empty() && *rest.begin() != "..") return rest;
  }
  return std::nullopt;
}

Result<Fd> open_rooted(const std::string& root, const std::string& directory) {
  const Fd top(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!top) {
    return Status(StatusCode::kUnavailable, fmt::format("the agent's sink.root {}: {}", root, std::strerror(errno)));
  }
  const auto inside = beneath(root, directory);
  if (!inside) {
    return refused(StatusCode::kPermissionDenied, directory,
                   fmt::format("it is not below {}, where this agent writes files (its setting sink.root)", root));
  }
  fs::path made = ".";
  Fd at = open_beneath(top, made, O_PATH);
  for (const fs::path& name : *inside) {
    if (name.empty() || name == ".") continue;
    made /= name;
    Fd next = open_beneath(top, made, O_PATH);
    if (!next && errno == ENOENT && (::mkdirat(at.get(), name.c_str(), kMode) == 0 || errno == EEXIST))
      next = open_beneath(top, made, O_PATH);
    if (!next && (errno == ELOOP || errno == EXDEV)) {
      return refused(StatusCode::kPermissionDenied, directory,
                     fmt::format("'{}' is a symbolic link, which this agent does not follow below its sink.root {}: "
                                 "name the directory itself",
                                 made.lexically_normal().string(), root));
    }
    if (!next && errno == ENOSYS)
      return refused(StatusCode::kUnsupported, directory, "a sink.root needs openat2(2), Linux 5.6 or newer");
    if (!next) return refused(StatusCode::kInvalidArgument, directory, std::strerror(errno));
    at = std::move(next);
  }
  Fd opened = open_beneath(top, made, O_RDONLY);
  if (!opened) return refused(StatusCode::kInvalidArgument, directory, std::strerror(errno));
  return opened;
}

Result<Fd> open_anywhere(const std::string& directory) {
  if (!directory.starts_with('/')) {
    return refused(StatusCode::kInvalidArgument, directory,
                   "the agent runs elsewhere, and has no sink.root that a relative path could start from: give a "
                   "complete path");
  }
  auto way = open_directory(directory, kMode);
  if (!way) return refused(way.status().code(), directory, way.status().message());
  Fd opened(::openat(way->get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened) return refused(StatusCode::kInvalidArgument, directory, std::strerror(errno));
  return opened;
}

/// Checks that the names of the stream's files are not too long there, and that the first name is free.
Status check_names(const Fd& directory, const std::string& path, const std::string& stream, Sink::Format format) {
  constexpr std::uint64_t kLast = std::numeric_limits<std::uint64_t>::max();
  const long known = ::fpathconf(directory.get(), _PC_NAME_MAX);
  const std::size_t most = known > 0 ? static_cast<std::size_t>(known) : NAME_MAX;
  const std::size_t added = sink_file_name("", kLast, format).size();
  if (stream.size() + added > most) {
    return {StatusCode::kInvalidArgument,
            fmt::format("a stream whose frames become files in {} may have a name of {} bytes, since a file name there "
                        "has at most {} and ends in '{}'; this one has {}",
                        path, most - std::min(added, most), most, sink_file_name("", kLast, format), stream.size())};
  }
  struct stat info{};
  const std::string first = sink_file_name(stream, 0, format);
  if (::fstatat(directory.get(), first.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) {
    return {StatusCode::kAlreadyExists,
            fmt::format("{}/{} exists already, and the agent replaces no file: remove the files of the earlier stream, "
                        "or choose another directory or stream name",
                        path, first)};
  }
  return ok_status();
}

}  // namespace

std::string sink_file_name(const std::string& stream, std::uint64_t sequence, Sink::Format format) {
  return fmt::format("{}-{:08}.{}", stream, sequence, format == Sink::Format::kParquet ? "parquet" : "arrow");
}

Result<std::shared_ptr<const SinkDirectory>> SinkDirectory::open(const std::string& root, const std::string& directory,
                                                                 const std::string& stream, Sink::Format format) {
  for (const std::string& name : {directory, stream}) {
    if (name.find('\0') != std::string::npos) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("sink directory {}: a name with a NUL is none for files", directory.c_str()));
    }
  }
  WHERRY_ASSIGN(auto fd, root.empty() ? open_anywhere(directory) : open_rooted(root, directory));
  fs::path whole = directory;
  if (whole.is_relative()) whole = fs::absolute(root) / directory;
  std::string path = whole.lexically_normal().string();
  if (path.size() > 1 && path.ends_with('/')) path.pop_back();
  WHERRY_TRY(check_names(fd, path, stream, format));
  struct stat where{};
  if (::fstat(fd.get(), &where) != 0) return refused(StatusCode::kUnavailable, directory, std::strerror(errno));
  WHERRY_ASSIGN(auto handle, handles().share(std::move(fd), path));
  const std::shared_ptr<SinkDirectory> opened(new SinkDirectory);
  opened->device_ = where.st_dev;
  opened->fd_ = std::move(handle);
  opened->path_ = std::move(path);
  return std::shared_ptr<const SinkDirectory>(opened);
}

}  // namespace wherry::move
