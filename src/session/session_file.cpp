// SPDX-License-Identifier: Apache-2.0
#include "session/session_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <grp.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "base/absolute_path.hpp"
#include "base/clock.hpp"
#include "base/fd.hpp"
#include "base/secure_directory.hpp"
#include "base/try.hpp"
#include "base/user.hpp"
#include "base/version.hpp"

namespace wherry {
namespace {

constexpr unsigned kFileVersion = 2;
constexpr std::size_t kMaxFileBytes = std::size_t{1} << 16;

constexpr int kMaxLinks = 8;
constexpr auto kTakeOver = std::chrono::seconds(2);  // for a stale file that somebody else looks at, too

/// Whether an agent has locked the session file that is open as `fd`. On file systems without locks, only a connection
/// shows whether the agent lives.
bool held(int fd) {
  if (flock(fd, LOCK_SH | LOCK_NB) != 0) return true;
  flock(fd, LOCK_UN);
  return false;
}

/// Whether `host` is reachable only from this machine, so that the agent's pid is valid here.
bool loopback(const std::string& host) {
  return host.empty() || host.starts_with("127.") || host.starts_with("::1") || host.starts_with("localhost");
}

bool trusted(uid_t owner) { return owner == getuid() || owner == 0; }

constexpr const char* kRemedy = "name another session file, for example with $WHERRY_SESSION";

/// The default place of the session file.
std::string unnamed_session_file() {
  if (const char* dir = std::getenv("XDG_RUNTIME_DIR"); dir != nullptr && *dir != 0)
    return fmt::format("{}/wherry/agent.json", dir);
  return fmt::format("/tmp/wherry-{}/agent.json", user_outside());
}

/// Whether the file's content names the group `gid`.
bool names_group(const std::string& text, gid_t gid) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("group") || !json["group"].is_string()) return false;
  const struct group* const entry = getgrnam(json["group"].get_ref<const std::string&>().c_str());
  return entry != nullptr && entry->gr_gid == gid;
}

struct Opened {
  Fd file;
  std::string text;
};

/// Opens a file that belongs to this user or root, and that only its owner can have written. A file that the user named
/// may also belong to another user who shares it with a group. This is not allowed for default paths in /tmp, because
/// any user can create them. `links`: how many symbolic links of this user or root may lead to the file.
Result<Opened> open_private(const std::string& path, int links) {
  const auto complete = absolute_path(path);
  if (!complete) {
    return Status(complete.status().code(),
                  fmt::format("cannot read the session file: {}", complete.status().message()));
  }
  const std::filesystem::path& whole = *complete;
  const auto cannot_read = [&](int error) {
    return Status(error == EACCES || error == ELOOP ? StatusCode::kPermissionDenied : StatusCode::kInvalidArgument,
                  fmt::format("cannot read the session file {}: {}", path,
                              error == ELOOP ? "it is a symbolic link" : std::strerror(error)));
  };
  const Status missing(StatusCode::kNotFound,
                       fmt::format("no agent: {} does not exist; start one with `wherry agent start`", path));
  auto directory = open_directory(whole.parent_path());
  if (!directory) {
    if (directory.status().code() == StatusCode::kNotFound) return missing;
    return Status(directory.status().code(),
                  fmt::format("cannot read the session file {}: {}", path, directory.status().message()));
  }
  Opened opened;
  opened.file =
      Fd(::openat(directory->get(), whole.filename().c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat status{};
  if (!opened.file && errno == ELOOP && links > 0 &&
      fstatat(directory->get(), whole.filename().c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
      trusted(status.st_uid)) {
    std::array<char, PATH_MAX> target{};
    const ssize_t length = readlinkat(directory->get(), whole.filename().c_str(), target.data(), target.size());
    if (length <= 0) return cannot_read(errno);
    return open_private(whole.parent_path() / std::string_view(target.data(), static_cast<std::size_t>(length)),
                        links - 1);
  }
  if (!opened.file) {
    if (errno != ENOENT && errno != ENOTDIR) return cannot_read(errno);
    return missing;
  }
  if (fstat(opened.file.get(), &status) != 0) return cannot_read(errno);
  if (!S_ISREG(status.st_mode)) {
    return Status(StatusCode::kInvalidArgument, fmt::format("{} is not a file, so not a session file", path));
  }
  opened.text.resize(kMaxFileBytes);
  const ssize_t bytes = ::read(opened.file.get(), opened.text.data(), opened.text.size());
  if (bytes < 0) return cannot_read(errno);
  opened.text.resize(static_cast<std::size_t>(bytes));
  const bool shared = names_group(opened.text, status.st_gid);
  const uid_t owner = shared && path != unnamed_session_file() ? status.st_uid : getuid();
  if (!trusted(status.st_uid) && status.st_uid != owner) {
    return Status(StatusCode::kPermissionDenied,
                  fmt::format("{} belongs to user {}: its agent cannot be trusted", path, status.st_uid));
  }
  if ((status.st_mode & (S_IRWXO | (shared ? S_IWGRP | S_IXGRP : S_IRWXG))) != 0) {
    return Status(StatusCode::kPermissionDenied,
                  fmt::format("{} holds a token, but others may read it: chmod 600 it, and restart its agent", path));
  }
  WHERRY_TRY(check_private(*directory, whole.parent_path(), kRemedy, owner));
  return opened;
}

}  // namespace

std::string default_session_file() {
  if (const char* path = std::getenv("WHERRY_SESSION"); path != nullptr && *path != 0) return path;
  return unnamed_session_file();
}

std::string local_socket_for(const std::string& session_file) { return session_file + ".sock"; }

std::string control_socket_for(const std::string& session_file) { return session_file + ".control"; }

Status share_with_group(const std::string& path, const std::string& group, unsigned mode) {
  const struct group* const entry = getgrnam(group.c_str());
  if (entry == nullptr)
    return {StatusCode::kInvalidArgument, fmt::format("agent.group = '{}': there is no such group", group)};
  if (chown(path.c_str(), static_cast<uid_t>(-1), entry->gr_gid) != 0 || chmod(path.c_str(), mode) != 0) {
    return {StatusCode::kInvalidArgument, fmt::format("agent.group = '{}': cannot give {} to it ({}): the agent's user "
                                                      "must be a member",
                                                      group, path, std::strerror(errno))};
  }
  return ok_status();
}

Result<Fd> session_directory(const std::string& path, const std::string& group) {
  const auto whole = absolute_path(path);
  if (!whole)
    return Status(whole.status().code(), fmt::format("cannot make the session file: {}", whole.status().message()));
  const std::filesystem::path directory = whole->parent_path();
  std::error_code error;
  const bool made = !std::filesystem::exists(directory, error);
  auto opened = secure_directory(directory, 0700, kRemedy);
  if (!opened || !made || group.empty()) return opened;
  WHERRY_TRY(share_with_group(directory, group, 0750));
  return opened;
}

Result<SessionFileClaim> SessionFileClaim::make(const std::string& path, const std::string& group) {
  SessionFileClaim claim;
  WHERRY_ASSIGN(claim.directory_, session_directory(path, group));
  claim.path_ = path;
  claim.name_ = std::filesystem::path(path).filename();
  auto old = open_private(path, 0);
  if (!old) {
    if (old.status().code() == StatusCode::kNotFound) return claim;
    return old.status();
  }
  const auto file = parse_session(old->text, path);
  if (!file && file.status().code() != StatusCode::kVersionMismatch) return file.status();  // not ours to replace
  if (!held(old->file.get())) return claim;
  const std::string pid = file ? fmt::format(" (pid {})", file->pid) : "";
  return Status(StatusCode::kAlreadyExists,
                fmt::format("{} belongs to a running agent{}: stop it, or choose another --session-file", path, pid));
}

/// Writes the file if none exists, or over a file that no agent holds and this process can lock.
Status SessionFileClaim::put_in_place(const std::string& temporary) {
  const int at = directory_.get();
  Status taken(StatusCode::kAlreadyExists,
               fmt::format("{} belongs to a running agent: stop it, or choose another --session-file", path_));
  const auto cannot_write = [&](int error) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("cannot write the session file {}: {}", path_, std::strerror(error)));
  };
  for (const Deadline deadline(kTakeOver); !deadline.passed();) {
    if (rename_to_free_name(directory_, temporary, name_)) return ok_status();
    if (errno != EEXIST) return cannot_write(errno);
    const Fd old(::openat(at, name_.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (!old && errno == ENOENT) continue;
    if (!old) return cannot_write(errno);
    if (held(old.get())) return taken;
    struct stat locked{};
    struct stat named{};
    // A reader that checks whether the agent lives also holds the lock for a moment.
    if (flock(old.get(), LOCK_EX | LOCK_NB) == 0 && fstat(old.get(), &locked) == 0 &&
        fstatat(at, name_.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 && locked.st_ino == named.st_ino &&
        locked.st_dev == named.st_dev) {
      return ::renameat(at, temporary.c_str(), at, name_.c_str()) == 0 ? ok_status() : cannot_write(errno);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return taken;
}

Status SessionFileClaim::publish(const SessionFile& file) {
  static std::atomic<unsigned> published{0};
  const std::string temporary = fmt::format(".{}.{}.{}", name_.substr(0, 64), getpid(), ++published);
  const auto failed = [&](Status why) {
    ::unlinkat(directory_.get(), temporary.c_str(), 0);
    return why;
  };
  ::unlinkat(directory_.get(), temporary.c_str(), 0);  // of an agent with this pid that was killed here
  file_ = Fd(::openat(directory_.get(), temporary.c_str(), O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR | O_CLOEXEC, 0600));
  int error = file_ ? 0 : errno;
  const std::string text = session_text(file);
  if (error == 0 && ::fchmod(file_.get(), 0600) != 0) error = errno;  // whatever the umask
  if (error == 0) {
    const ssize_t written = ::write(file_.get(), text.data(), text.size());
    if (written < 0)
      error = errno;
    else if (static_cast<std::size_t>(written) != text.size())
      error = ENOSPC;
  }
  if (error != 0) {
    const bool full = error == ENOSPC || error == EDQUOT;
    return failed({full ? StatusCode::kResourceExhausted : StatusCode::kInvalidArgument,
                   fmt::format("cannot write the session file {}: {}{}", path_, std::strerror(error),
                               full ? "; free some space there, or choose another --session-file" : "")});
  }
  if (flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    return failed({StatusCode::kUnsupported,
                   fmt::format("cannot lock the session file {}: {}. Its file system must have flock(2): {}", path_,
                               std::strerror(errno), kRemedy)});
  }
  if (!file.group.empty()) {
    if (Status s = share_with_group(fmt::format("/proc/self/fd/{}", file_.get()), file.group, 0640); !s)
      return failed(std::move(s));
  }
  if (Status s = put_in_place(temporary); !s) return failed(std::move(s));
  return ok_status();
}

void SessionFileClaim::withdraw() noexcept {
  struct stat ours{};
  struct stat named{};
  if (file_ && fstat(file_.get(), &ours) == 0 &&
      fstatat(directory_.get(), name_.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 && ours.st_ino == named.st_ino &&
      ours.st_dev == named.st_dev)
    ::unlinkat(directory_.get(), name_.c_str(), 0);
  file_.reset();
}

std::string session_text(const SessionFile& file) {
  nlohmann::json json{
      {"version", kFileVersion}, {"pid", file.pid},     {"control", file.control},           {"host", file.host},
      {"port", file.port},       {"token", file.token}, {"local_socket", file.local_socket}, {"flight", file.flight},
      {"metrics", file.metrics}, {"wherry", kVersion}};
  if (!file.group.empty()) json["group"] = file.group;  // readers know that the wider mode is meant
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Result<SessionFile> parse_session(std::string_view text, const std::string& path) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  const Status foreign(StatusCode::kProtocol,
                       fmt::format("{} is not a session file of an agent: remove it, or name the right one", path));
  if (!json.is_object()) return foreign;
  // The library would convert silently: 70000 to port 4464, true to 1.
  const auto number = [&](const char* key, std::uint64_t largest) -> std::optional<std::uint64_t> {
    const auto it = json.find(key);
    if (it == json.end() || !it->is_number_unsigned() || it->get<std::uint64_t>() > largest) return std::nullopt;
    return it->get<std::uint64_t>();
  };
  const auto version = number("version", std::numeric_limits<std::uint64_t>::max());
  if (!version) return foreign;
  if (*version != kFileVersion) {
    return Status(StatusCode::kVersionMismatch,
                  fmt::format("{} is a session file of version {}; this Wherry ({}) reads version {}: install the "
                              "same Wherry on both sides, or stop that agent and remove the file",
                              path, *version, kVersion, kFileVersion));
  }
  SessionFile file;
  file.pid = static_cast<int>(number("pid", std::numeric_limits<int>::max()).value_or(0));
  file.port = static_cast<std::uint16_t>(number("port", std::numeric_limits<std::uint16_t>::max()).value_or(0));
  const std::pair<const char*, std::string*> texts[] = {
      {"control", &file.control},           {"host", &file.host},     {"token", &file.token},
      {"local_socket", &file.local_socket}, {"flight", &file.flight}, {"metrics", &file.metrics}};
  for (const auto& [key, to] : texts) {
    const auto it = json.find(key);
    if (it == json.end() || !it->is_string()) return foreign;
    *to = it->get<std::string>();
  }
  if (const auto it = json.find("group"); it != json.end()) {
    if (!it->is_string()) return foreign;
    file.group = it->get<std::string>();
  }
  const bool addressed = file.host.empty() ? file.port == 0 && !file.control.empty() : file.port != 0;
  if (file.token.empty() || !addressed || file.pid == 0) return foreign;
  return file;
}

Result<SessionFile> read_session_file(const std::string& path) {
  WHERRY_ASSIGN(auto opened, open_private(path, kMaxLinks));
  auto file = parse_session(opened.text, path);
  if (file) {
    std::error_code error;
    const auto directory = std::filesystem::canonical(path, error).parent_path();
    for (std::string* const socket : {&file->control, &file->local_socket}) {
      if (!socket->empty()) *socket = (directory / *socket).string();
    }
  }
  if (file && loopback(file->host) && !held(opened.file.get())) {
    return Status(StatusCode::kUnavailable, fmt::format("the agent of {} (pid {}) is not running any more; start one "
                                                        "with `wherry agent start`",
                                                        path, file->pid));
  }
  return file;
}

void remove_embedded_directory(const std::string& session_file) noexcept {
  const std::filesystem::path directory = std::filesystem::path(session_file).parent_path();
  std::error_code ignored;
  if (directory.filename().string().starts_with("wherry-embedded-"))
    std::filesystem::remove(directory, ignored);  // only when empty
}

}  // namespace wherry
