// SPDX-License-Identifier: Apache-2.0
// One end of a socket to QEMU, with bytes that wait in both directions.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "base/fd.hpp"
#include "wherry/status.hpp"

namespace wherry::sim {

/// Two connected stream sockets, which exec closes. kInternal.
Result<std::pair<Fd, Fd>> socket_pair();

/// Never blocks. File descriptors that QEMU sends along are closed, because they are not needed here.
class Channel {
 public:
  Channel() = default;
  explicit Channel(Fd socket) : socket_(std::move(socket)) {}

  void put(std::span<const std::byte> bytes) { out_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size()); }
  void put(std::string_view text) { out_.append(text); }
  /// Sends as much as possible now. kUnavailable: the other end is closed.
  Status flush();
  /// Receives what is there. True: some bytes came. kUnavailable: the other end is closed.
  Result<bool> fill();

  /// The received text that is not consumed yet.
  [[nodiscard]] std::string_view text() const noexcept { return std::string_view(in_).substr(begin_); }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return std::as_bytes(std::span(in_.data(), in_.size())).subspan(begin_);
  }
  void consume(std::size_t count);
  [[nodiscard]] bool wants_to_send() const noexcept { return !out_.empty(); }
  [[nodiscard]] std::size_t waiting_bytes() const noexcept { return out_.size(); }
  [[nodiscard]] int fd() const noexcept { return socket_.get(); }

 private:
  Fd socket_;
  std::string in_, out_;
  std::size_t begin_ = 0;  ///< of what is not consumed, in in_
};

}  // namespace wherry::sim
