// SPDX-License-Identifier: Apache-2.0
#include "base/unix_socket.hpp"
#include "base/try.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>

namespace wherry {
namespace {

/// A path as a socket address. A path that is too long is reached through an open descriptor of its directory.
class Address {
 public:
  static Result<Address> of(const std::string& path) {
    Address result;
    std::string name = path;
    if (path.size() > kMaxPath) {
      const std::filesystem::path whole(path);
      const std::string last = whole.filename().string();
      if (last.size() > kMaxSocketName || !whole.has_parent_path()) {
        return Status(StatusCode::kInvalidArgument,
                      fmt::format("{}: the name of a socket may have {} bytes in a path as long as this, but '{}' has "
                                  "{}: choose a shorter one",
                                  path, kMaxSocketName, last, last.size()));
      }
      result.directory_ = Fd(::open(whole.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
      if (!result.directory_) {
        return Status(StatusCode::kUnavailable,
                      fmt::format("{}: {}", whole.parent_path().string(), std::strerror(errno)));
      }
      name = fmt::format("/proc/self/fd/{}/{}", result.directory_.get(), last);
    }
    if (name.empty()) return Status(StatusCode::kInvalidArgument, "the path of a socket is empty");
    result.address_.sun_family = AF_UNIX;
    std::memcpy(result.address_.sun_path, name.data(), name.size());
    return result;
  }
  [[nodiscard]] const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&address_); }
  static constexpr socklen_t kSize = sizeof(sockaddr_un);

 private:
  static constexpr std::size_t kMaxPath = sizeof(sockaddr_un::sun_path) - 1;
  sockaddr_un address_{};
  Fd directory_;
};

Fd new_socket() { return Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

/// A socket file outlives a crashed process. Removes it if no process listens there.
Status clear_path(const std::string& path, const Address& address) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) return ok_status();
  if (!S_ISSOCK(info.st_mode)) return {StatusCode::kAlreadyExists, path + " exists and is not a socket: remove it"};
  const Fd probe = new_socket();
  if (::connect(probe.get(), address.get(), Address::kSize) == 0 || errno != ECONNREFUSED)
    return {StatusCode::kAlreadyExists, "another agent listens on " + path};
  ::unlink(path.c_str());
  return ok_status();
}

}  // namespace

Result<PeerCredentials> peer_credentials(int socket) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0)
    return Status(StatusCode::kInternal, fmt::format("SO_PEERCRED: {}", std::strerror(errno)));
  return PeerCredentials{credentials.pid, credentials.uid, credentials.gid};
}

Result<Fd> listen_unix(const std::string& path) {
  WHERRY_ASSIGN(auto address, Address::of(path));
  WHERRY_TRY(clear_path(path, address));
  const auto failed = [&](const char* what) {
    return Status(StatusCode::kUnavailable,
                  fmt::format("cannot listen on {}: {}: {}", path, what, std::strerror(errno)));
  };
  Fd listener = new_socket();
  // On Linux, the file that bind() creates gets the mode of the socket, so it is 0600 from the start.
  if (!listener || ::fchmod(listener.get(), 0600) != 0) return failed("socket");
  if (::bind(listener.get(), address.get(), Address::kSize) != 0) return failed("bind");
  if (::chmod(path.c_str(), 0600) != 0 || ::listen(listener.get(), 64) != 0) {
    const Status status = failed("listen");
    ::unlink(path.c_str());
    return status;
  }
  return listener;
}

Result<Fd> connect_unix(const std::string& path, const Deadline& deadline) {
  WHERRY_ASSIGN(auto address, Address::of(path));
  Fd socket = new_socket();
  for (;;) {
    if (socket && ::connect(socket.get(), address.get(), Address::kSize) == 0) return socket;
    if (errno != EAGAIN || deadline.passed()) break;  // EAGAIN: its queue is full
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return Status(errno == EACCES || errno == EPERM ? StatusCode::kPermissionDenied : StatusCode::kUnavailable,
                fmt::format("no agent at {}: {}", path, std::strerror(errno)));
}

}  // namespace wherry
