// SPDX-License-Identifier: Apache-2.0
#include "fabric/session_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/socket.hpp"
#include "base/version.hpp"

namespace wherry {
namespace {

constexpr std::size_t kMaxSocketPath = 107;  // sockaddr_un::sun_path, without the final 0

bool alive(int pid) { return pid > 0 && (kill(pid, 0) == 0 || errno == EPERM); }

}  // namespace

std::string default_session_file() {
  if (const char* path = std::getenv("WHERRY_SESSION"); path != nullptr && *path != 0) return path;
  if (const char* dir = std::getenv("XDG_RUNTIME_DIR"); dir != nullptr && *dir != 0)
    return fmt::format("{}/wherry/agent.json", dir);
  return fmt::format("/tmp/wherry-{}/agent.json", getuid());
}

std::string local_socket_for(const std::string& session_file) {
  std::string path = session_file + ".sock";
  if (path.size() <= kMaxSocketPath) return path;
  return fmt::format("/tmp/wherry-{}-{:x}.sock", getuid(), std::hash<std::string>{}(session_file));
}

Status prepare_session_file(const std::string& path) {
  const std::filesystem::path directory = std::filesystem::absolute(path).parent_path();
  std::error_code error;
  if (!std::filesystem::exists(directory, error)) {
    if (!std::filesystem::create_directories(directory, error) && error) {
      return {StatusCode::kInvalidArgument, fmt::format("cannot make {}: {}", directory.string(), error.message())};
    }
    chmod(directory.c_str(), 0700);
  }
  if (auto old = read_session_file(path); old && old->pid != getpid()) {
    return {StatusCode::kAlreadyExists,
            fmt::format("{} belongs to a running agent (pid {}): stop it, or choose another --session-file", path,
                        old->pid)};
  }
  return Status::ok();
}

Status write_session_file(const std::string& path, const SessionFile& file) {
  const nlohmann::json json{{"version", 1},          {"pid", file.pid},         {"host", file.host},
                            {"port", file.port},     {"token", file.token},     {"local_socket", file.local_socket},
                            {"flight", file.flight}, {"metrics", file.metrics}, {"wherry", kVersion}};
  const std::string temporary = fmt::format("{}.{}", path, getpid());
  const Fd fd(::open(temporary.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
  const std::string text = json.dump(1) + "\n";
  if (!fd || ::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    return {StatusCode::kInvalidArgument,
            fmt::format("cannot write the session file {}: {}", path, std::strerror(error))};
  }
  return Status::ok();
}

Result<SessionFile> read_session_file(const std::string& path) {
  std::ifstream in(path);
  if (!in) return Status(StatusCode::kNotFound, fmt::format("no agent: there is no session file {}", path));
  const auto json = nlohmann::json::parse(in, nullptr, false);
  SessionFile file;
  try {
    if (json.at("version").get<int>() != 1)
      return Status(StatusCode::kVersionMismatch, fmt::format("{} is of another version of wherry", path));
    file.pid = json.at("pid").get<int>();
    file.host = json.at("host").get<std::string>();
    file.port = json.at("port").get<std::uint16_t>();
    file.token = json.at("token").get<std::string>();
    file.local_socket = json.at("local_socket").get<std::string>();
    file.flight = json.at("flight").get<std::string>();
    file.metrics = json.at("metrics").get<std::string>();
  } catch (const nlohmann::json::exception&) {
    return Status(StatusCode::kProtocol, fmt::format("{} is not a session file of an agent", path));
  }
  if (!alive(file.pid))
    return Status(StatusCode::kUnavailable,
                  fmt::format("the agent of {} (pid {}) is not running any more", path, file.pid));
  return file;
}

void remove_embedded_directory(const std::string& session_file) noexcept {
  const std::filesystem::path directory = std::filesystem::path(session_file).parent_path();
  std::error_code ignored;
  if (directory.filename().string().starts_with("wherry-embedded-"))
    std::filesystem::remove(directory, ignored);  // only when empty
}

void remove_session_file(const std::string& path, int pid) noexcept {
  if (auto file = read_session_file(path); file && file->pid == pid) ::unlink(path.c_str());
}

}  // namespace wherry
