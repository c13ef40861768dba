// SPDX-License-Identifier: Apache-2.0
#include "kv/peers/tcp_stream.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/cpu.hpp"
#include "base/try.hpp"

namespace wherry::kv::bench {

Result<TcpStream> TcpStream::connect(const std::string& to) {
  WHERRY_ASSIGN(auto at, parse_host_port(to));
  WHERRY_ASSIGN(auto socket, connect_tcp(at, Deadline(std::chrono::seconds(5))));
  const int on = 1;
  const int flags = fcntl(socket.get(), F_GETFL);
  if (setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0 || flags < 0 ||
      fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK) != 0)
    return wherry::Status(StatusCode::kInternal, fmt::format("{}: {}", to, std::strerror(errno)));
  return TcpStream(std::move(socket));
}

wherry::Status TcpStream::flush() {
  std::size_t sent = 0;
  while (sent < out_.size()) {
    const ssize_t n = ::send(socket_.get(), out_.data() + sent, out_.size() - sent, MSG_NOSIGNAL);
    if (n > 0) {
      sent += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN) {
      pollfd ready{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
      ::poll(&ready, 1, 1000);
    } else if (errno != EINTR) {
      return {StatusCode::kUnavailable, fmt::format("the server is gone: {}", std::strerror(errno))};
    }
  }
  out_.clear();
  return {};
}

Result<bool> TcpStream::receive() {
  if (begin_ == end_) begin_ = end_ = 0;
  if (end_ == in_.size() && begin_ > 0) {
    std::memmove(in_.data(), in_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == in_.size()) in_.resize(2 * in_.size());
  const ssize_t n = ::recv(socket_.get(), in_.data() + end_, in_.size() - end_, MSG_DONTWAIT);
  if (n > 0) {
    end_ += static_cast<std::size_t>(n);
    return true;
  }
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  return wherry::Status(StatusCode::kUnavailable, "the server has closed the connection");
}

void TcpStream::wait(Idle how) const noexcept {
  pollfd ready{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  switch (how) {
    case Idle::spin:
      return cpu_relax();
    case Idle::yield:
      sched_yield();
      return;
    case Idle::sleep:
      ::poll(&ready, 1, 1);
  }
}

void TcpStream::consume(std::size_t bytes) noexcept { begin_ += bytes; }

}  // namespace wherry::kv::bench
