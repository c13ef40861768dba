// SPDX-License-Identifier: Apache-2.0
// Lines over a stream socket that never blocks. In both directions, the memory that a peer can occupy is bounded.
#pragma once

#include <poll.h>

#include <optional>
#include <string>

#include "base/socket.hpp"

namespace wherry::kv {

/// Lets the kernel detect within three seconds that the other machine is gone, even if nothing is sent. (If only the
/// other process has ended, the kernel knows at once.)
void notice_death(int socket) noexcept;

class LineConnection {
 public:
  LineConnection() = default;
  explicit LineConnection(Fd socket) noexcept;

  /// Queues a line, and writes as much as the socket accepts. kUnavailable: the peer is gone, or does not read.
  wherry::Status send(std::string line);
  wherry::Status flush();
  /// The next line, if a complete one has arrived. kUnavailable: the peer is gone; kProtocol: the line is too long.
  Result<std::optional<std::string>> next();
  [[nodiscard]] bool wants_to_write() const noexcept { return !out_.empty(); }
  [[nodiscard]] int fd() const noexcept { return socket_.get(); }
  /// For poll(2): ready when there is input, or room for queued output.
  [[nodiscard]] pollfd awaited() const noexcept {
    return {fd(), static_cast<short>(wants_to_write() ? POLLIN | POLLOUT : POLLIN), 0};
  }
  explicit operator bool() const noexcept { return static_cast<bool>(socket_); }
  void close() noexcept;

 private:
  Fd socket_;
  std::string in_;
  std::string out_;
  bool ended_ = false;
};

}  // namespace wherry::kv
