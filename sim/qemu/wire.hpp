// SPDX-License-Identifier: Apache-2.0
// The other end of the NIC's cable. QEMU's socket backend carries frames over a stream (net/socket.c), each behind its
// length, which is four bytes with the highest first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/qemu/channel.hpp"
#include "wherry/status.hpp"

namespace wherry::sim {

class Wire {
 public:
  explicit Wire(Fd socket) : channel_(std::move(socket)) {}

  /// Queued; turn() sends.
  void send(std::span<const std::byte> frame);
  /// The next frame that the NIC has sent. kProtocol: the length is not that of a frame.
  Result<std::optional<std::vector<std::byte>>> take();

  /// kUnavailable: QEMU is gone.
  Status turn();
  [[nodiscard]] bool wants_to_send() const noexcept { return channel_.wants_to_send(); }
  [[nodiscard]] std::size_t waiting_bytes() const noexcept { return channel_.waiting_bytes(); }
  [[nodiscard]] int fd() const noexcept { return channel_.fd(); }

 private:
  Channel channel_;
};

}  // namespace wherry::sim
