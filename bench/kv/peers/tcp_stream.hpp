// SPDX-License-Identifier: Apache-2.0
// A TCP connection without delays: it collects bytes, sends them together, and by default receives without
// sleeping.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "base/socket.hpp"

namespace wherry::kv::bench {

/// A client's activity while it waits for an answer.
enum class Idle : std::uint8_t {
  spin,   ///< looks again at once
  yield,  ///< lets others on its core run in between
  sleep   ///< until something arrives
};

class TcpStream {
 public:
  /// Numeric or resolvable host; TCP_NODELAY, non-blocking. kUnavailable: no process listens.
  static Result<TcpStream> connect(const std::string& to);

  void append(ByteView bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }
  void append(std::string_view text) { append(std::as_bytes(std::span(text))); }
  /// All appended bytes go to the kernel. kUnavailable: the other side has closed.
  [[nodiscard]] wherry::Status flush();
  /// Adds received bytes to arrived(). False in the result: there were none. Never blocks.
  [[nodiscard]] Result<bool> receive();
  /// Waits until there is something to receive, or a millisecond has passed.
  void wait(Idle how) const noexcept;

  [[nodiscard]] ByteView arrived() const noexcept { return ByteView(in_.data() + begin_, end_ - begin_); }
  void consume(std::size_t bytes) noexcept;

 private:
  explicit TcpStream(Fd socket) noexcept : socket_(std::move(socket)), in_(kInitialBytes) {}
  static constexpr std::size_t kInitialBytes = std::size_t{1} << 18;

  Fd socket_;
  Bytes out_, in_;
  std::size_t begin_ = 0, end_ = 0;  ///< of what arrived and was not consumed, in in_
};

}  // namespace wherry::kv::bench
