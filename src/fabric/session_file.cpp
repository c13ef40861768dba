// SPDX-License-Identifier: Apache-2.0
#include "fabric/session_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <grp.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/socket.hpp"
#include "base/version.hpp"

namespace wherry {
namespace {

constexpr unsigned kFileVersion = 2;
constexpr std::size_t kMaxFileBytes = std::size_t{1} << 16;

/// Whether a process `pid` runs here. A zombie, which nobody has waited for yet, does not.
bool alive(int pid) {
  if (pid <= 0 || (kill(pid, 0) != 0 && errno != EPERM)) return false;
  std::ifstream in(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(in, text);
  const std::size_t name_ends = text.rfind(')');
  return name_ends == std::string::npos || text.compare(name_ends, 3, ") Z") != 0;
}

/// Whether only this machine reaches an agent that listens there, so that its pid means something.
bool loopback(const std::string& host) {
  return host.empty() || host.starts_with("127.") || host.starts_with("::1") || host.starts_with("localhost");
}

bool trusted(uid_t owner) { return owner == getuid() || owner == 0; }

/// Where an agent is looked for when nobody names one.
std::string unnamed_session_file() {
  if (const char* dir = std::getenv("XDG_RUNTIME_DIR"); dir != nullptr && *dir != 0)
    return fmt::format("{}/wherry/agent.json", dir);
  return fmt::format("/tmp/wherry-{}/agent.json", getuid());
}

/// Whether the file says that it is meant for the group that it belongs to.
bool names_group(const std::string& text, gid_t gid) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("group") || !json["group"].is_string()) return false;
  const struct group* const entry = getgrnam(json["group"].get_ref<const std::string&>().c_str());
  return entry != nullptr && entry->gr_gid == gid;
}

/// Whoever owns the directory can put another file or socket in place. `owner`: trusted besides this user and root.
Status check_directory(const std::filesystem::path& directory, uid_t owner = getuid()) {
  struct stat status{};
  if (stat(directory.c_str(), &status) != 0 || trusted(status.st_uid) || status.st_uid == owner) return ok_status();
  return {StatusCode::kPermissionDenied,
          fmt::format("{} belongs to user {}, who could put a false session file there: name another file, for example "
                      "with $WHERRY_SESSION",
                      directory.string(), status.st_uid)};
}

/// The text of a file that only its owner can have written, and that belongs to this user or root; or to whoever shares
/// it with a group, where it was named: anybody may make the default places of /tmp.
Result<std::string> read_private(const std::string& path) {
  const auto cannot_read = [&](int error) {
    return Status(error == EACCES ? StatusCode::kPermissionDenied : StatusCode::kInvalidArgument,
                  fmt::format("cannot read the session file {}: {}", path, std::strerror(error)));
  };
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) {
    if (errno != ENOENT && errno != ENOTDIR) return cannot_read(errno);
    return Status(StatusCode::kNotFound,
                  fmt::format("no agent: {} does not exist; start one with `wherry agent start`", path));
  }
  struct stat status{};
  if (fstat(fd.get(), &status) != 0) return cannot_read(errno);
  if (!S_ISREG(status.st_mode)) {
    return Status(StatusCode::kInvalidArgument, fmt::format("{} is not a file, so not a session file", path));
  }
  std::string text(kMaxFileBytes, '\0');
  const ssize_t bytes = ::read(fd.get(), text.data(), text.size());
  if (bytes < 0) return cannot_read(errno);
  text.resize(static_cast<std::size_t>(bytes));
  const bool shared = names_group(text, status.st_gid);
  const uid_t owner = shared && path != unnamed_session_file() ? status.st_uid : getuid();
  if (!trusted(status.st_uid) && status.st_uid != owner) {
    return Status(StatusCode::kPermissionDenied,
                  fmt::format("{} belongs to user {}: its agent cannot be trusted", path, status.st_uid));
  }
  if ((status.st_mode & (S_IRWXO | (shared ? S_IWGRP | S_IXGRP : S_IRWXG))) != 0) {
    return Status(StatusCode::kPermissionDenied,
                  fmt::format("{} holds a token, but others may read it: chmod 600 it, and restart its agent", path));
  }
  if (Status s = check_directory(std::filesystem::absolute(path).parent_path(), owner); !s) return s;
  return text;
}

/// What the file says, whether its agent lives or not.
Result<SessionFile> load(const std::string& path) {
  auto text = read_private(path);
  if (!text) return text.status();
  return parse_session(*text, path);
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

Status prepare_session_file(const std::string& path, const std::string& group) {
  const std::filesystem::path directory = std::filesystem::absolute(path).parent_path();
  std::error_code error;
  if (!std::filesystem::exists(directory, error)) {
    if (!std::filesystem::create_directories(directory, error) && error) {
      return {StatusCode::kInvalidArgument, fmt::format("cannot make {}: {}", directory.string(), error.message())};
    }
    chmod(directory.c_str(), 0700);
    if (!group.empty()) {
      if (Status s = share_with_group(directory, group, 0750); !s) return s;
    }
  }
  if (Status s = check_directory(directory); !s) return s;
  if (auto old = load(path); old && old->pid != getpid() && alive(old->pid)) {
    return {StatusCode::kAlreadyExists,
            fmt::format("{} belongs to a running agent (pid {}): stop it, or choose another --session-file", path,
                        old->pid)};
  }
  return ok_status();
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
  // The library would convert: 70000 to a port of 4464, true to 1.
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

Status write_session_file(const std::string& path, const SessionFile& file) {
  const std::string temporary = fmt::format("{}.{}", path, getpid());
  const Fd fd(::open(temporary.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
  const std::string text = session_text(file);
  if (fd && !file.group.empty()) {
    if (Status s = share_with_group(temporary, file.group, 0640); !s) {
      ::unlink(temporary.c_str());
      return s;
    }
  }
  if (!fd || ::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    return {StatusCode::kInvalidArgument,
            fmt::format("cannot write the session file {}: {}", path, std::strerror(error))};
  }
  return ok_status();
}

Result<SessionFile> read_session_file(const std::string& path) {
  auto file = load(path);
  if (file) {
    std::error_code error;
    const auto directory = std::filesystem::canonical(path, error).parent_path();
    for (std::string* const socket : {&file->control, &file->local_socket}) {
      if (!socket->empty()) *socket = (directory / *socket).string();
    }
  }
  if (file && loopback(file->host) && !alive(file->pid)) {
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

void remove_session_file(const std::string& path, int pid) noexcept {
  if (auto file = load(path); file && file->pid == pid) ::unlink(path.c_str());
}

}  // namespace wherry
