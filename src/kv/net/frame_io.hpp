// SPDX-License-Identifier: Apache-2.0
// Converts between whole Ethernet frames and messages: docs/design/kv-protocol.md, section 3. The bytes come from
// outside, so all of them are checked.
#pragma once

#include <cstddef>
#include <span>

#include "kv/message.hpp"

namespace wherry::kv {

enum class Parsed {
  kOurs,
  kForeign,  ///< not kv: the host's
  kBadChecksum,
  kBadLength,
};

/// A message and its sender. The value points into the parsed frame.
struct Received {
  Endpoint from;
  Message message;
};

/// The destination address of a kv frame. Precondition: the frame has at least kHeaderBytes.
[[nodiscard]] Endpoint destination_of(ByteView frame) noexcept;

/// Parses a whole Ethernet frame that arrived at `self`. Sets `out` only if the frame is ours.
[[nodiscard]] Parsed parse(ByteView frame, const Endpoint& self, Received* out) noexcept;

enum class UdpChecksum { kRight, kNone };

/// Builds a whole frame in `out`. Returns its length; 0 if `out` is too small or UDP cannot carry the value.
[[nodiscard]] std::size_t build(std::span<std::byte> out, const Endpoint& from, const Endpoint& to,
                                const Message& message, UdpChecksum checksum = UdpChecksum::kRight) noexcept;

}  // namespace wherry::kv
