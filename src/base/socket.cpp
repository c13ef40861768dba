// SPDX-License-Identifier: Apache-2.0
#include "base/socket.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "base/try.hpp"

namespace wherry {
namespace {

struct AddrInfoDeleter {
  void operator()(addrinfo* info) const noexcept { freeaddrinfo(info); }
};
using AddrInfo = std::unique_ptr<addrinfo, AddrInfoDeleter>;

Result<AddrInfo> resolve(const HostPort& at, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(at.host.c_str(), std::to_string(at.port).c_str(), &hints, &found);
  if (error != 0) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("cannot resolve '{}': {}", at.to_string(), gai_strerror(error)));
  }
  return AddrInfo(found);
}

Status no_agent(const HostPort& to, int error) {
  return {StatusCode::kUnavailable, fmt::format("no agent at {}: {}", to.to_string(), std::strerror(error))};
}

}  // namespace

void tune_socket(int fd) noexcept {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // Keep-alive detects within about half a minute that a peer machine has vanished.
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  const int idle = 10;
  const int interval = 5;
  const int count = 4;
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

std::string HostPort::to_string() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

Result<HostPort> parse_host_port(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  HostPort result;
  if (colon == std::string::npos || colon == 0) {
    return Status(StatusCode::kInvalidArgument, fmt::format("'{}' is not host:port", text));
  }
  result.host = text.substr(0, colon);
  if (result.host.size() > 2 && result.host.front() == '[' && result.host.back() == ']') {
    result.host = result.host.substr(1, result.host.size() - 2);
  }
  const char* first = text.data() + colon + 1;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(first, last, result.port);
  if (error != std::errc() || end != last || first == last) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("'{}' has no port number (0 to 65535) after the colon", text));
  }
  return result;
}

Result<Fd> listen_tcp(const HostPort& at) {
  WHERRY_ASSIGN(const AddrInfo info, resolve(at, AI_PASSIVE));
  Fd fd(::socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  if (fd) setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!fd || ::bind(fd.get(), info->ai_addr, info->ai_addrlen) != 0 || ::listen(fd.get(), 64) != 0) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("cannot listen on {}: {}", at.to_string(), std::strerror(errno)));
  }
  return fd;
}

Result<std::uint16_t> local_port(const Fd& socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return Status(StatusCode::kInternal, fmt::format("getsockname: {}", std::strerror(errno)));
  }
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

Result<Fd> start_connect_tcp(const HostPort& to) {
  WHERRY_ASSIGN(const AddrInfo info, resolve(to, 0));
  Fd fd(::socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return Status(StatusCode::kInternal, fmt::format("socket: {}", std::strerror(errno)));
  if (::connect(fd.get(), info->ai_addr, info->ai_addrlen) != 0 && errno != EINPROGRESS) return no_agent(to, errno);
  tune_socket(fd.get());
  return fd;
}

Result<bool> try_finish_connect_tcp(const Fd& socket, const HostPort& to) {
  pollfd p{socket.get(), POLLOUT, 0};
  if (::poll(&p, 1, 0) <= 0) return false;
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) return no_agent(to, error);
  return true;
}

Result<Fd> connect_tcp(const HostPort& to, const Deadline& deadline) {
  WHERRY_ASSIGN(Fd socket, start_connect_tcp(to));
  pollfd p{socket.get(), POLLOUT, 0};
  ::poll(&p, 1, deadline.left_ms(1'000'000));
  WHERRY_ASSIGN(const bool arrived, try_finish_connect_tcp(socket, to));
  if (!arrived)
    return Status(StatusCode::kUnavailable, fmt::format("no answer from an agent at {} in time", to.to_string()));
  return socket;
}

}  // namespace wherry
