// SPDX-License-Identifier: Apache-2.0
#include "base/frame_channel.hpp"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/try.hpp"

namespace wherry {
namespace {

constexpr std::size_t kHeaderBytes = 6;  // u32 length, u16 type

Status gone() { return {StatusCode::kUnavailable, "the peer closed the control connection"}; }

}  // namespace

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
      // Read while sending: a peer may not read before its own bytes are read, so both ends could wait for ever.
      std::array<std::byte, 16384> chunk;
      const iovec part{chunk.data(), chunk.size()};
      const ByteStream::Moved moved = stream_->read({&part, 1});
      in_.insert(in_.end(), chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(moved.bytes));
      if (moved.outcome == ByteStream::Outcome::kClosed) return gone();
    }
  };
  WHERRY_TRY(flush_all());
  WHERRY_TRY(post(type, payload));
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
    WHERRY_ASSIGN(auto frame, try_receive());
    if (frame) return *std::move(frame);
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
