// SPDX-License-Identifier: Apache-2.0
#include "base/socket.hpp"

#include "base/byte_stream.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

namespace wherry {
namespace {

constexpr std::size_t kHeaderBytes = 6;  // u32 length, u16 type

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

}  // namespace

void tune_socket(int fd) noexcept {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // A peer machine that vanished without a word is noticed within about half a minute.
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  const int idle = 10;
  const int interval = 5;
  const int count = 4;
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

namespace {

Status gone() { return {StatusCode::kUnavailable, "the peer closed the control connection"}; }

}  // namespace

void Fd::reset() noexcept {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
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
  auto info = resolve(at, AI_PASSIVE);
  if (!info) return info.status();
  Fd fd(::socket((*info)->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  if (fd) setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!fd || ::bind(fd.get(), (*info)->ai_addr, (*info)->ai_addrlen) != 0 || ::listen(fd.get(), 64) != 0) {
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

namespace {

Status no_agent(const HostPort& to, int error) {
  return {StatusCode::kUnavailable, fmt::format("no agent at {}: {}", to.to_string(), std::strerror(error))};
}

}  // namespace

Result<Fd> start_connect_tcp(const HostPort& to) {
  auto info = resolve(to, 0);
  if (!info) return info.status();
  Fd fd(::socket((*info)->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return Status(StatusCode::kInternal, fmt::format("socket: {}", std::strerror(errno)));
  if (::connect(fd.get(), (*info)->ai_addr, (*info)->ai_addrlen) != 0 && errno != EINPROGRESS)
    return no_agent(to, errno);
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
  auto socket = start_connect_tcp(to);
  if (!socket) return socket.status();
  pollfd p{socket->get(), POLLOUT, 0};
  ::poll(&p, 1, deadline.left_ms(1'000'000));
  const auto arrived = try_finish_connect_tcp(*socket, to);
  if (!arrived) return arrived.status();
  if (!*arrived)
    return Status(StatusCode::kUnavailable, fmt::format("no answer from an agent at {} in time", to.to_string()));
  return socket;
}

Result<std::optional<ControlFrame>> take_frame(Bytes& arrived, std::size_t most) {
  if (arrived.size() < kHeaderBytes) return std::optional<ControlFrame>();
  std::uint32_t length = 0;
  std::memcpy(&length, arrived.data(), sizeof length);
  if (length < 2 || length > most) {
    return Status(StatusCode::kProtocol,
                  fmt::format("a control message claims {} bytes (2 to {} allowed)", length, most));
  }
  if (arrived.size() < 4 + length) return std::optional<ControlFrame>();
  ControlFrame frame;
  std::memcpy(&frame.type, arrived.data() + 4, sizeof frame.type);
  frame.payload.assign(arrived.begin() + kHeaderBytes, arrived.begin() + 4 + length);
  arrived.erase(arrived.begin(), arrived.begin() + 4 + length);
  return std::optional<ControlFrame>(std::move(frame));
}

FrameChannel::FrameChannel() noexcept = default;
FrameChannel::FrameChannel(Fd socket) {
  if (socket) stream_ = plain_stream(std::move(socket));
}
FrameChannel::FrameChannel(std::unique_ptr<ByteStream> stream) noexcept : stream_(std::move(stream)) {}
FrameChannel::FrameChannel(FrameChannel&& other) noexcept = default;
FrameChannel& FrameChannel::operator=(FrameChannel&& other) noexcept = default;
FrameChannel::~FrameChannel() = default;
void FrameChannel::close() noexcept { stream_.reset(); }
int FrameChannel::fd() const noexcept { return stream_ ? stream_->fd() : -1; }

Status FrameChannel::flush() {
  if (!stream_) return gone();
  std::size_t sent = 0;
  Status outcome;
  while (sent < out_.size()) {
    const iovec part{out_.data() + sent, out_.size() - sent};
    const ByteStream::Moved moved = stream_->write({&part, 1});
    if (moved.outcome != ByteStream::Outcome::kMoved) {
      if (moved.outcome != ByteStream::Outcome::kNotNow) outcome = gone();
      break;
    }
    sent += moved.bytes;
  }
  out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(sent));
  return outcome;
}

Status FrameChannel::post(std::uint16_t type, ByteView payload) {
  if (!stream_) return gone();
  if (payload.size() + 2 > kMaxFrameBytes) {
    return {StatusCode::kInvalidArgument,
            fmt::format("a control message of {} bytes is over the limit of {}", payload.size(), kMaxFrameBytes - 2)};
  }
  if (out_.size() + kHeaderBytes + payload.size() > kMaxUnsentBytes) {
    return {StatusCode::kResourceExhausted,
            fmt::format("the peer does not read its control connection: {} bytes wait", out_.size())};
  }
  const std::size_t at = out_.size();
  const auto length = static_cast<std::uint32_t>(payload.size() + 2);
  out_.resize(at + kHeaderBytes + payload.size());
  std::memcpy(out_.data() + at, &length, sizeof length);
  std::memcpy(out_.data() + at + 4, &type, sizeof type);
  if (!payload.empty()) std::memcpy(out_.data() + at + kHeaderBytes, payload.data(), payload.size());
  return flush();
}

Status FrameChannel::send(std::uint16_t type, ByteView payload, const Deadline& deadline) {
  const auto flush_all = [&]() -> Status {
    for (;;) {
      if (Status s = flush(); !s || out_.empty()) return s;
      if (deadline.passed()) return {StatusCode::kDeadlineExceeded, "the peer does not read its control connection"};
      pollfd p{fd(), POLLOUT | POLLIN, 0};
      ::poll(&p, 1, deadline.left_ms(100));
      if ((p.revents & POLLIN) == 0) continue;
      // A peer may read no more before somebody takes what it says: two that wait for each other would wait for ever.
      std::array<std::byte, 16384> chunk;
      const iovec part{chunk.data(), chunk.size()};
      const ByteStream::Moved moved = stream_->read({&part, 1});
      in_.insert(in_.end(), chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(moved.bytes));
      if (moved.outcome == ByteStream::Outcome::kClosed) return gone();
    }
  };
  if (Status s = flush_all(); !s) return s;
  if (Status s = post(type, payload); !s) return s;
  return flush_all();
}

Result<std::optional<ControlFrame>> FrameChannel::try_receive() {
  for (;;) {
    auto frame = take_frame(in_, most_);
    if (!frame || frame->has_value()) return frame;
    if (!stream_) return gone();
    std::array<std::byte, 16384> chunk;
    const iovec part{chunk.data(), chunk.size()};
    const ByteStream::Moved moved = stream_->read({&part, 1});
    if (moved.outcome == ByteStream::Outcome::kMoved) {
      in_.insert(in_.end(), chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(moved.bytes));
    } else if (moved.outcome == ByteStream::Outcome::kNotNow) {
      return std::optional<ControlFrame>();
    } else {
      return gone();
    }
  }
}

Result<ControlFrame> FrameChannel::receive(const Deadline& deadline) {
  for (;;) {
    auto frame = try_receive();
    if (!frame) return frame.status();
    if (frame->has_value()) return *std::move(*frame);
    if (deadline.passed()) return Status(StatusCode::kDeadlineExceeded, "no answer on the control connection in time");
    pollfd p{fd(), POLLIN, 0};
    ::poll(&p, 1, deadline.left_ms(1000));
  }
}

bool FrameChannel::peer_gone() const noexcept {
  if (!stream_) return true;
  pollfd p{fd(), POLLIN | POLLRDHUP, 0};
  if (::poll(&p, 1, 0) <= 0) return false;
  if ((p.revents & (POLLHUP | POLLERR | POLLRDHUP | POLLNVAL)) != 0) return true;
  std::byte b;
  const ssize_t n = ::recv(fd(), &b, 1, MSG_PEEK | MSG_DONTWAIT);
  return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

}  // namespace wherry
