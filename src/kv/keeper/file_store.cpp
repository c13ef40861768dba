// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "kv/keeper/keeper_server.hpp"

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

class FileStore final : public ConfigurationStore {
 public:
  FileStore(std::string path, Fd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  Result<std::optional<Configuration>> load() override {
    const Fd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd && errno == ENOENT) return std::optional<Configuration>();
    if (!fd) return failed("read", path_);
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
    const std::string next = path_ + ".new";
    {
      const Fd fd(::open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
      if (!fd) return failed("write", next);
      if (auto s = write_all(fd.get(), encode(configuration), next); !s) return s;
    }
    if (::rename(next.c_str(), path_.c_str()) != 0) return failed("replace", path_);
    // The new name is kept when its directory is.
    const std::size_t slash = path_.rfind('/');
    const std::string directory = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
    const Fd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return fd && ::fsync(fd.get()) == 0 ? wherry::ok_status() : failed("sync", directory);
  }

 private:
  std::string path_;
  Fd lock_;
};

}  // namespace

Result<std::unique_ptr<ConfigurationStore>> open_file_store(const std::string& path) {
  const std::string name = path + ".lock";
  Fd lock(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock) return failed("open", name);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return wherry::Status(StatusCode::kFailedPrecondition,
                          fmt::format("another keeper runs on '{}'; stop it first", path));
  }
  return std::unique_ptr<ConfigurationStore>(std::make_unique<FileStore>(path, std::move(lock)));
}

}  // namespace wherry::kv
