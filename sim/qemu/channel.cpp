// SPDX-License-Identifier: Apache-2.0
#include "sim/qemu/channel.hpp"

#include <fmt/core.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace wherry::sim {
namespace {

constexpr int kSocketBuffer = 1 << 20;
constexpr std::size_t kPiece = 1 << 16;

Status closed() { return {StatusCode::kUnavailable, "QEMU has closed its connection"}; }

void close_all(msghdr& message) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      ::close(fd);
    }
  }
}

}  // namespace

Result<std::pair<Fd, Fd>> socket_pair() {
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return Status(StatusCode::kInternal, fmt::format("cannot make sockets: {}", std::strerror(errno)));
  for (const int end : ends) ::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &kSocketBuffer, sizeof kSocketBuffer);
  return std::pair(Fd(ends[0]), Fd(ends[1]));
}

Status Channel::flush() {
  std::size_t sent = 0;
  while (sent < out_.size()) {
    const ssize_t count = ::send(fd(), out_.data() + sent, out_.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) {
      sent += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      return closed();
    }
  }
  out_.erase(0, sent);
  return {};
}

Result<bool> Channel::fill() {
  std::array<char, kPiece> piece;
  alignas(cmsghdr) std::array<char, 256> control;
  iovec io{piece.data(), piece.size()};
  msghdr message{};
  message.msg_iov = &io;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t count = ::recvmsg(fd(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (count > 0) {
    close_all(message);
    in_.append(piece.data(), static_cast<std::size_t>(count));
    return true;
  }
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  return closed();
}

void Channel::consume(std::size_t count) {
  begin_ += count;
  if (begin_ == in_.size()) {
    in_.clear();
    begin_ = 0;
  } else if (begin_ > kPiece) {
    in_.erase(0, begin_);
    begin_ = 0;
  }
}

}  // namespace wherry::sim
