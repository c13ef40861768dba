// SPDX-License-Identifier: Apache-2.0
// Length-prefixed frames over a stream: the control channel.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/byte_stream.hpp"
#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/fd.hpp"
#include "wherry/status.hpp"

namespace wherry {

/// The largest control frame that either side accepts. A schema of kMaxNodes fields fits in it.
inline constexpr std::size_t kMaxFrameBytes = std::size_t{1} << 20;

/// The most bytes that a channel keeps for a peer that does not read.
inline constexpr std::size_t kMaxUnsentBytes = 2 * kMaxFrameBytes;

/// Frames of {u32 length of the rest, u16 type, payload}. One thread at a time.
struct ControlFrame {
  std::uint16_t type = 0;
  Bytes payload;
};

/// Removes the first frame from the received bytes. nullopt: incomplete. kProtocol: the bytes are not frames.
Result<std::optional<ControlFrame>> take_frame(Bytes& arrived, std::size_t most = kMaxFrameBytes);

class FrameChannel {
 public:
  FrameChannel() noexcept;
  explicit FrameChannel(Fd socket);
  explicit FrameChannel(std::unique_ptr<ByteStream> stream) noexcept;
  FrameChannel(FrameChannel&& other) noexcept;
  FrameChannel& operator=(FrameChannel&& other) noexcept;
  ~FrameChannel();

  /// Blocks (bounded by the deadline) until all is handed to the kernel. kUnavailable: the peer is gone.
  /// kDeadlineExceeded: the peer does not read. If only a part of a frame was sent, the rest is kept and sent first
  /// next time, so the peer never sees half a frame.
  Status send(std::uint16_t type, ByteView payload, const Deadline& deadline);
  /// Never blocks: keeps bytes that the kernel does not accept for flush(). kUnavailable: the peer is gone.
  /// kResourceExhausted: the frame was dropped, because more than kMaxUnsentBytes would be kept.
  Status post(std::uint16_t type, ByteView payload);
  /// Sends as many of the bytes that post() and send() kept as the kernel accepts. Never blocks. kUnavailable: the peer
  /// is gone.
  Status flush();
  [[nodiscard]] std::size_t unsent() const noexcept { return out_.size(); }
  /// Refuses received frames of more than `most` bytes (kProtocol), without allocating memory for them.
  void limit_received(std::size_t most) noexcept { most_ = most; }
  /// Blocks until a whole frame has arrived. kUnavailable: the peer is gone; kProtocol: not frames; kDeadlineExceeded.
  Result<ControlFrame> receive(const Deadline& deadline);
  /// Returns a whole frame, or nullopt if none has arrived yet. Never blocks.
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
