// SPDX-License-Identifier: Apache-2.0
#include "base/secure_directory.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/absolute_path.hpp"
#include "base/try.hpp"

namespace wherry {
namespace {

constexpr int kMaxLinks = 40;  // as the kernel's path walk

bool is_trusted(uid_t owner, uid_t trusted) { return owner == getuid() || owner == 0 || owner == trusted; }

/// The components of a path, the last one first.
void push_components(std::string_view path, std::vector<std::string>& rest) {
  std::vector<std::string> names;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view name = path.substr(0, slash);
    if (!name.empty() && name != ".") names.emplace_back(name);
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
  }
  rest.insert(rest.end(), names.rbegin(), names.rend());
}

Status cannot_open(const std::string& path, int error) {
  const StatusCode code = error == ENOENT                     ? StatusCode::kNotFound
                          : error == EACCES || error == EPERM ? StatusCode::kPermissionDenied
                                                              : StatusCode::kInvalidArgument;
  return {code, fmt::format("cannot open the directory {}: {}", path, std::strerror(error))};
}

/// Restores mode bits that the umask may have removed and the owner needs. The /proc link leads to the open directory,
/// even if its name now denotes another one. fchmod(2) does not accept an O_PATH descriptor.
void undo_umask(const Fd& directory, mode_t mode) {
  struct stat info{};
  if (::fstat(directory.get(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
      (info.st_mode & mode) != mode)
    (void)::chmod(fmt::format("/proc/self/fd/{}", directory.get()).c_str(), mode);
}

Fd start_of(std::string_view path) {
  return Fd(::open(path.starts_with('/') ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

Result<Fd> walk(const std::string& path, mode_t make_mode, uid_t trusted, bool follow_last) {
  std::vector<std::string> rest;
  push_components(path, rest);
  Fd at = start_of(path);
  int links = 0;
  while (at && !rest.empty()) {
    const std::string name = std::move(rest.back());
    rest.pop_back();
    Fd next(::openat(at.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!next && errno == ENOENT && make_mode != 0) {
      const bool made = ::mkdirat(at.get(), name.c_str(), make_mode) == 0;
      if (!made && errno != EEXIST) {
        return Status(StatusCode::kInvalidArgument,
                      fmt::format("cannot make the directory {}: {}", path, std::strerror(errno)));
      }
      next = Fd(::openat(at.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
      if (made && next) undo_umask(next, make_mode);
    }
    struct stat info{};
    if (!next || ::fstat(next.get(), &info) != 0) return cannot_open(path, errno);
    if (!S_ISLNK(info.st_mode)) {
      if (!S_ISDIR(info.st_mode)) return cannot_open(path, ENOTDIR);
      at = std::move(next);
      continue;
    }
    if (!is_trusted(info.st_uid, trusted) || (rest.empty() && !follow_last)) {
      return Status(StatusCode::kPermissionDenied,
                    fmt::format("'{}' in {} is a symbolic link{}: name the directory itself", name, path,
                                is_trusted(info.st_uid, trusted) ? "" : fmt::format(" of user {}", info.st_uid)));
    }
    std::array<char, PATH_MAX> target{};
    const ssize_t length = ::readlinkat(next.get(), "", target.data(), target.size());
    if (length < 0 || ++links > kMaxLinks) return cannot_open(path, length < 0 ? errno : ELOOP);
    const std::string_view text(target.data(), static_cast<std::size_t>(length));
    if (text.starts_with('/')) at = start_of(text);
    push_components(text, rest);
  }
  if (!at) return cannot_open(path, errno);
  return at;
}

}  // namespace

Result<Fd> open_directory(const std::string& path, mode_t make_mode, uid_t trusted) {
  return walk(path, make_mode, trusted, true);
}

Status check_private(const Fd& directory, const std::string& path, const std::string& remedy, uid_t trusted) {
  struct stat info{};
  if (::fstat(directory.get(), &info) != 0) return cannot_open(path, errno);
  if (!is_trusted(info.st_uid, trusted)) {
    return {StatusCode::kPermissionDenied,
            fmt::format("{} belongs to user {}, which could put false files there: {}", path, info.st_uid, remedy)};
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (info.st_mode & S_ISVTX) == 0) {
    return {
        StatusCode::kPermissionDenied,
        fmt::format("other users may write to {} (mode {:04o}) and could put false files there: chmod go-w it, or {}",
                    path, info.st_mode & 07777U, remedy)};
  }
  return ok_status();
}

Result<Fd> secure_directory(const std::string& path, mode_t make_mode, const std::string& remedy) {
  auto directory = walk(path, make_mode, getuid(), false);
  if (!directory) {
    if (directory.status().code() != StatusCode::kPermissionDenied) return directory;
    return Status(StatusCode::kPermissionDenied, fmt::format("{}, or {}", directory.status().message(), remedy));
  }
  WHERRY_TRY(check_private(*directory, path, remedy));
  return directory;
}

Result<Fd> open_log_file(const std::string& path) {
  const auto refused = [&](StatusCode code, const std::string& why) {
    return Status(code, fmt::format("cannot log to '{}': {}", path, why));
  };
  const auto whole = absolute_path(path);
  if (!whole) return refused(whole.status().code(), whole.status().message());
  auto directory = secure_directory(whole->parent_path(), 0, "name another log file");
  if (!directory) {
    const StatusCode code = directory.status().code();
    return refused(code == StatusCode::kNotFound ? StatusCode::kInvalidArgument : code, directory.status().message());
  }
  // Without O_NONBLOCK, opening a FIFO would block until another process reads it.
  Fd file(::openat(directory->get(), whole->filename().c_str(),
                   O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  if (!file && errno == ELOOP) return refused(StatusCode::kPermissionDenied, "it is a symbolic link");
  struct stat info{};
  if (!file || ::fstat(file.get(), &info) != 0) return refused(StatusCode::kInvalidArgument, std::strerror(errno));
  if (S_ISCHR(info.st_mode)) return file;
  if (!S_ISREG(info.st_mode)) return refused(StatusCode::kInvalidArgument, "it is not a file");
  if (!is_trusted(info.st_uid, getuid())) {
    return refused(StatusCode::kPermissionDenied, fmt::format("it belongs to user {}", info.st_uid));
  }
  if (info.st_nlink != 1)
    return refused(StatusCode::kPermissionDenied, fmt::format("the file has {} names (hard links)", info.st_nlink));
  if ((info.st_mode & 0600) != 0600 && info.st_uid == geteuid()) (void)::fchmod(file.get(), info.st_mode | 0600);
  return file;
}

bool rename_to_free_name(const Fd& directory, const std::string& from, const std::string& to) noexcept {
  const int at = directory.get();
  if (::renameat2(at, from.c_str(), at, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno != EINVAL && errno != ENOSYS) return false;
  // Some file systems, such as NFS, do not support this rename.
  return ::linkat(at, from.c_str(), at, to.c_str(), 0) == 0 && ::unlinkat(at, from.c_str(), 0) == 0;
}

}  // namespace wherry
