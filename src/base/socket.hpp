// SPDX-License-Identifier: Apache-2.0
// File descriptors that close themselves, and length-prefixed frames over a stream socket: the control channel.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "wherry/status.hpp"

namespace wherry {

class Fd {
 public:
  Fd() noexcept = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }
  void reset() noexcept;
  [[nodiscard]] int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// host:port with a numeric or resolvable host; "[::1]:80" for IPv6.
struct HostPort {
  std::string host;
  std::uint16_t port = 0;
  [[nodiscard]] std::string to_string() const;
};
Result<HostPort> parse_host_port(const std::string& text);

/// TCP_NODELAY and keep-alive. Does nothing to a Unix socket.
void tune_socket(int fd) noexcept;
Result<Fd> listen_tcp(const HostPort& at);
Result<std::uint16_t> local_port(const Fd& socket);
Result<Fd> connect_tcp(const HostPort& to, const Deadline& deadline);
/// The same in two steps that wait for no peer (a name is resolved in the first): a socket on its way, and whether it
/// has arrived. It becomes writable when there is news.
Result<Fd> start_connect_tcp(const HostPort& to);
Result<bool> try_finish_connect_tcp(const Fd& socket, const HostPort& to);

/// The largest control frame that either side accepts: a schema of kMaxNodes fields fits.
inline constexpr std::size_t kMaxFrameBytes = std::size_t{1} << 20;

/// What a channel keeps for a peer that does not read.
inline constexpr std::size_t kMaxUnsentBytes = 2 * kMaxFrameBytes;

/// Frames of {u32 length of what follows, u16 type, payload}. One thread at a time.
struct ControlFrame {
  std::uint16_t type = 0;
  Bytes payload;
};

/// Takes the first frame off what arrived; nullopt: it is not all there yet. kProtocol: these are no frames.
Result<std::optional<ControlFrame>> take_frame(Bytes& arrived, std::size_t most = kMaxFrameBytes);

class ByteStream;

class FrameChannel {
 public:
  FrameChannel() noexcept;
  explicit FrameChannel(Fd socket);
  explicit FrameChannel(std::unique_ptr<ByteStream> stream) noexcept;
  FrameChannel(FrameChannel&& other) noexcept;
  FrameChannel& operator=(FrameChannel&& other) noexcept;
  ~FrameChannel();

  /// Blocks (bounded by the deadline) until all is handed to the kernel. kUnavailable: the peer is gone.
  /// kDeadlineExceeded: the peer does not read. The rest of a frame that was begun is kept and goes first next time, so
  /// the peer never sees half of one.
  Status send(std::uint16_t type, ByteView payload, const Deadline& deadline);
  /// Never blocks: keeps what the kernel does not take; flush() sends it. kUnavailable: the peer is gone.
  /// kResourceExhausted: more than kMaxUnsentBytes would be kept; nothing of this frame is.
  Status post(std::uint16_t type, ByteView payload);
  /// Sends what post() and send() kept, as far as the kernel takes it; never blocks. kUnavailable: the peer is gone.
  Status flush();
  [[nodiscard]] std::size_t unsent() const noexcept { return out_.size(); }
  /// Frames of more than `most` bytes are not received (kProtocol), nor is room made for them.
  void limit_received(std::size_t most) noexcept { most_ = most; }
  /// Blocks until a whole frame is there. kUnavailable: peer gone; kProtocol: not frames; kDeadlineExceeded.
  Result<ControlFrame> receive(const Deadline& deadline);
  /// A whole frame if one has arrived; nullopt if not yet. Never blocks.
  Result<std::optional<ControlFrame>> try_receive();
  /// Whether the peer has closed its side or the connection is broken. Never blocks.
  [[nodiscard]] bool peer_gone() const noexcept;
  void close() noexcept;
  [[nodiscard]] int fd() const noexcept;  ///< -1: closed

 private:
  std::unique_ptr<ByteStream> stream_;
  Bytes in_;
  std::size_t most_ = kMaxFrameBytes;
  Bytes out_;  ///< framed, not yet taken by the kernel
};

}  // namespace wherry
