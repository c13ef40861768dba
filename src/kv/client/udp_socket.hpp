// SPDX-License-Identifier: Apache-2.0
// Messages over a UDP socket, up to 32 for each system call.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>

#include "base/socket.hpp"
#include "kv/datagram.hpp"

namespace wherry::kv {

/// "host:port", or "host" with the port of the protocol; IPv4.
Result<Endpoint> resolve_endpoint(const std::string& text);

class UdpSocket final : public Output {
 public:
  static constexpr std::size_t kBatch = 32;

  static Result<std::unique_ptr<UdpSocket>> open();
  UdpSocket(const UdpSocket&) = delete;
  UdpSocket& operator=(const UdpSocket&) = delete;

  /// Leaves with the next flush(), or when there are kBatch.
  void send(const Endpoint& to, const Message& message) override;
  /// What the kernel does not take within a millisecond is lost, as it may be anywhere on the way.
  void flush() noexcept;
  /// Gives `take(from, message)` what has arrived, one batch at most; how many datagrams, messages or not.
  template <typename Take>
  std::size_t receive(Take&& take) {
    const std::size_t count = receive_batch();
    for (std::size_t i = 0; i < count; ++i) {
      const sockaddr_in& from = in_.addresses[i];
      if ((in_.headers[i].msg_hdr.msg_flags & MSG_TRUNC) != 0) continue;
      if (const auto message = unpack_datagram(ByteView(in_.data[i]).first(in_.headers[i].msg_len)))
        take(Endpoint{.ip = ntohl(from.sin_addr.s_addr), .port = ntohs(from.sin_port)}, *message);
    }
    return count;
  }
  /// Sleeps until something arrives or the time is over.
  void wait(std::chrono::nanoseconds time) noexcept;

 private:
  struct Batch {
    std::array<Datagram, kBatch> data;
    std::array<iovec, kBatch> vectors;
    std::array<sockaddr_in, kBatch> addresses;
    std::array<mmsghdr, kBatch> headers;
    Batch() noexcept;
  };

  explicit UdpSocket(Fd fd) noexcept : fd_(std::move(fd)) {}
  std::size_t receive_batch() noexcept;

  Fd fd_;
  std::size_t waiting_ = 0;
  Batch in_, out_;
};

}  // namespace wherry::kv
