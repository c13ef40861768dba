// SPDX-License-Identifier: Apache-2.0
// Messages between nodes and clients, without their transport: docs/design/kv-protocol.md, section 3.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.hpp"
#include "kv/generated/frame.hpp"

namespace wherry::kv {

/// Time as the hardware counts it: cycles of 250 MHz, 4 ns each, from the node's own origin.
using Cycles = std::uint64_t;
inline constexpr std::uint64_t kCycleNs = 4;
inline constexpr Cycles kNever = ~Cycles{0};
inline constexpr Cycles kMillisecond = 1'000'000 / kCycleNs;

/// The address of a node or a client. Sockets leave `mac` at 0. XdpPorts uses the bits above its 48.
struct Endpoint {
  std::uint64_t mac = 0;
  std::uint32_t ip = 0;  ///< host byte order
  std::uint16_t port = 0;
  friend constexpr bool operator==(const Endpoint&, const Endpoint&) = default;
};

/// A frame without its addresses. The value is borrowed for the duration of the call that it is given to.
struct Message {
  Kv header;
  ByteView value;
};

/// The kind of a reply is that of the request plus this bit.
inline constexpr std::uint8_t kReplyBit = 16;

/// The outcome in a reply.
[[nodiscard]] inline Status status_of(const Kv& reply) noexcept {
  return static_cast<Status>(ReplyDetail::unpack(std::array{static_cast<std::byte>(reply.detail)}).status);
}

/// `detail` of frames between nodes about a write: its way in the bucket, and its place in the leader's window.
[[nodiscard]] constexpr std::uint8_t node_detail(std::uint32_t way, std::uint32_t place) noexcept {
  return static_cast<std::uint8_t>(way << 6 | place);
}

/// Receives the messages that a node or a client core sends. Called from within the calls to that core, on their
/// thread; it must not call back into the core.
class Output {
 public:
  virtual void send(const Endpoint& to, const Message& message) = 0;

 protected:
  Output() = default;
  Output(const Output&) = default;
  Output& operator=(const Output&) = default;
  ~Output() = default;
};

/// The registers of docs/reference/kv-registers.md, in a software node, a simulated core or a card. Offsets are
/// multiples of 4 below registers::kBytes. One thread at a time.
class RegisterIo {
 public:
  virtual std::uint32_t read(std::uint32_t offset) = 0;
  virtual void write(std::uint32_t offset, std::uint32_t value) = 0;

 protected:
  RegisterIo() = default;
  RegisterIo(const RegisterIo&) = default;
  RegisterIo& operator=(const RegisterIo&) = default;
  ~RegisterIo() = default;
};

}  // namespace wherry::kv
