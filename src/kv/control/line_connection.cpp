// SPDX-License-Identifier: Apache-2.0
#include "kv/control/line_connection.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "kv/control/control.hpp"

namespace wherry::kv {
namespace {

/// For each ping, a keeper sends a node some hundred bytes. A peer that leaves this many unread counts as silent.
constexpr std::size_t kMaxUnsent = std::size_t{1} << 20;

wherry::Status gone() { return {StatusCode::kUnavailable, "the peer closed the control connection"}; }

}  // namespace

void notice_death(int socket) noexcept {
  const auto set = [socket](int level, int name, int value) { setsockopt(socket, level, name, &value, sizeof value); };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(IPPROTO_TCP, TCP_KEEPCNT, 2);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 3000);
}

LineConnection::LineConnection(Fd socket) noexcept : socket_(std::move(socket)) {
  const int on = 1;
  fcntl(socket_.get(), F_SETFL, fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
  setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void LineConnection::close() noexcept {
  socket_.reset();
  in_.clear();
  out_.clear();
  ended_ = false;
}

wherry::Status LineConnection::send(std::string line) {
  if (!socket_) return gone();
  if (out_.size() + line.size() > kMaxUnsent) return {StatusCode::kUnavailable, "the peer does not read"};
  out_ += line;
  out_ += '\n';
  return flush();
}

wherry::Status LineConnection::flush() {
  while (!out_.empty()) {
    const ssize_t n = ::send(socket_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
    if (n > 0) {
      out_.erase(0, static_cast<std::size_t>(n));
    } else if (n < 0 && errno == EINTR) {
      continue;
    } else if (n < 0 && errno == EAGAIN) {
      return wherry::ok_status();
    } else {
      return gone();
    }
  }
  return wherry::ok_status();
}

Result<std::optional<std::string>> LineConnection::next() {
  for (;;) {
    const std::size_t end = in_.find('\n');
    if (end != std::string::npos) {
      std::string line = in_.substr(0, end);
      in_.erase(0, end + 1);
      return std::optional<std::string>(std::move(line));
    }
    if (in_.size() > kMaxControlLine)
      return wherry::Status(StatusCode::kProtocol, "control connection: a line is longer than 64 KiB");
    if (ended_ || !socket_) return gone();
    std::array<char, 16384> chunk;
    const ssize_t n = ::recv(socket_.get(), chunk.data(), chunk.size(), 0);
    if (n > 0) {
      in_.append(chunk.data(), static_cast<std::size_t>(n));
    } else if (n < 0 && errno == EINTR) {
      continue;
    } else if (n < 0 && errno == EAGAIN) {
      return std::optional<std::string>();
    } else {
      ended_ = true;
    }
  }
}

}  // namespace wherry::kv
