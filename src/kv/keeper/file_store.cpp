// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/secure_directory.hpp"
#include "base/try.hpp"
#include "kv/control/control.hpp"
#include "kv/keeper/configuration_store.hpp"

namespace wherry::kv {
namespace {

wherry::Status failed(const char* what, const std::string& path) {
  return {StatusCode::kInternal, fmt::format("cannot {} '{}': {}", what, path, std::strerror(errno))};
}

wherry::Status write_all(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return failed("write", path);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return ::fsync(fd) == 0 ? wherry::ok_status() : failed("sync", path);
}

/// Opens a file of this user in a secure directory. Does not follow links: they could lead to any file of the user.
Result<Fd> open_own(const Fd& directory, const std::string& name, int flags, const std::string& path) {
  Fd fd(::openat(directory.get(), name.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  if (!fd && errno == ELOOP)
    return wherry::Status(StatusCode::kPermissionDenied, fmt::format("'{}' is a symbolic link: remove it", path));
  struct stat info{};
  if (!fd || ::fstat(fd.get(), &info) != 0) return failed("open", path);
  if (!S_ISREG(info.st_mode) || info.st_nlink != 1 || (info.st_uid != ::getuid() && info.st_uid != 0)) {
    return wherry::Status(
        StatusCode::kPermissionDenied,
        fmt::format("'{}' is not a file of this user with one name: remove it, or name another --state", path));
  }
  return fd;
}

class FileStore final : public ConfigurationStore {
 public:
  FileStore(std::string path, std::string name, Fd directory, Fd lock)
      : path_(std::move(path)), name_(std::move(name)), directory_(std::move(directory)), lock_(std::move(lock)) {}

  Result<std::optional<Configuration>> load() override {
    if (::faccessat(directory_.get(), name_.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
      return std::optional<Configuration>();
    WHERRY_ASSIGN(const auto fd, open_own(directory_, name_, O_RDONLY, path_));
    std::string text;
    std::array<char, 4096> chunk;
    for (;;) {
      const ssize_t n = ::read(fd.get(), chunk.data(), chunk.size());
      if (n < 0) return failed("read", path_);
      if (n == 0) break;
      text.append(chunk.data(), static_cast<std::size_t>(n));
      if (text.size() > kMaxControlLine) break;
    }
    auto configuration = decode_configuration(text);
    if (!configuration) {
      return wherry::Status(StatusCode::kInvalidArgument,
                            fmt::format("'{}' is not what a keeper wrote ({}). If it is beyond repair, remove it: the "
                                        "keeper then asks the nodes",
                                        path_, configuration.status().message()));
    }
    return std::optional<Configuration>(*std::move(configuration));
  }

  wherry::Status store(const Configuration& configuration) override {
    const std::string next = name_ + ".new";
    ::unlinkat(directory_.get(), next.c_str(), 0);  // of a keeper that died; the lock is held
    {
      WHERRY_ASSIGN(const auto fd, open_own(directory_, next, O_WRONLY | O_CREAT | O_EXCL, path_ + ".new"));
      WHERRY_TRY(write_all(fd.get(), encode(configuration), path_ + ".new"));
    }
    if (::renameat(directory_.get(), next.c_str(), directory_.get(), name_.c_str()) != 0)
      return failed("replace", path_);
    // The new name is durable only after the directory is synced.
    const Fd fd(::openat(directory_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return fd && ::fsync(fd.get()) == 0 ? wherry::ok_status() : failed("sync the directory of", path_);
  }

 private:
  std::string path_;  ///< for messages
  std::string name_;
  Fd directory_;
  Fd lock_;
};

}  // namespace

Result<std::unique_ptr<ConfigurationStore>> open_file_store(const std::string& path) {
  const std::filesystem::path whole = std::filesystem::absolute(path);
  WHERRY_ASSIGN(auto directory, open_directory(whole.parent_path()));
  WHERRY_TRY(check_private(directory, whole.parent_path(), "name another --state"));
  const std::string name = whole.filename();
  WHERRY_ASSIGN(auto lock, open_own(directory, name + ".lock", O_RDWR | O_CREAT, path + ".lock"));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return wherry::Status(StatusCode::kFailedPrecondition,
                          fmt::format("another keeper runs on '{}'; stop it first", path));
  }
  return std::unique_ptr<ConfigurationStore>(
      std::make_unique<FileStore>(path, name, std::move(directory), std::move(lock)));
}

}  // namespace wherry::kv
