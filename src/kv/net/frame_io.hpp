// SPDX-License-Identifier: Apache-2.0
// Whole Ethernet frames <-> messages: docs/design/kv-protocol.md, section 3. The bytes come from outside, so it trusts
// nothing.
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

/// A message and its sender. The value lies in the frame that was parsed.
struct Received {
  Endpoint from;
  Message message;
};

/// The destination of a kv frame. Precondition: it has kHeaderBytes.
[[nodiscard]] Endpoint destination_of(ByteView frame) noexcept;

/// A whole Ethernet frame that came to `self`. `out` is set if it is ours only.
[[nodiscard]] Parsed parse(ByteView frame, const Endpoint& self, Received* out) noexcept;

enum class UdpChecksum { kRight, kNone };

/// A whole frame into `out`. Returns its bytes; 0 if `out` is too small or the value too long for UDP.
[[nodiscard]] std::size_t build(std::span<std::byte> out, const Endpoint& from, const Endpoint& to,
                                const Message& message, UdpChecksum checksum = UdpChecksum::kRight) noexcept;

}  // namespace wherry::kv
