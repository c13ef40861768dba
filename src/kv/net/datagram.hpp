// SPDX-License-Identifier: Apache-2.0
// A message as the payload of a UDP datagram: the kv header of 22 bytes, then the value. All ports, frames and
// simulated networks pack and unpack messages with these two functions.
#pragma once

#include <array>
#include <cstring>
#include <optional>
#include <span>

#include "kv/message.hpp"

namespace wherry::kv {

/// The longest message of the protocol. Peers may send values up to kLongestValue; a node answers these as well.
inline constexpr std::size_t kMaxDatagram = Kv::kBytes + kMaxValueBytes;
using Datagram = std::array<std::byte, kMaxDatagram>;

/// The longest value that the lengths of IPv4 and UDP allow.
inline constexpr std::size_t kLongestValue = 65535 - kMinIpLength;

/// Copies header and value to `out`. Returns their length; 0 if `out` is too small or the value too long for UDP.
inline std::size_t pack_datagram(const Message& message, std::span<std::byte> out) noexcept {
  const std::size_t bytes = Kv::kBytes + message.value.size();
  if (message.value.size() > kLongestValue || out.size() < bytes) return 0;
  message.header.pack(out.first<Kv::kBytes>());
  if (!message.value.empty()) std::memcpy(out.data() + Kv::kBytes, message.value.data(), message.value.size());
  return bytes;
}

/// Returns nullopt if `in` is shorter than a header. Checks nothing else. The value points into `in`.
inline std::optional<Message> unpack_datagram(ByteView in) noexcept {
  if (in.size() < Kv::kBytes) return std::nullopt;
  return Message{Kv::unpack(in.first<Kv::kBytes>()), in.subspan(Kv::kBytes)};
}

}  // namespace wherry::kv
