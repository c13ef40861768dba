// SPDX-License-Identifier: Apache-2.0
// A message as the payload of a UDP datagram: the kv header of 22 bytes, then the value. Sockets carry the rest.
#pragma once

#include <array>
#include <cstring>
#include <optional>

#include "kv/message.hpp"

namespace wherry::kv {

inline constexpr std::size_t kMaxDatagram = Kv::kBytes + kMaxValueBytes;
using Datagram = std::array<std::byte, kMaxDatagram>;

/// The bytes used, or 0 if the value is too long.
inline std::size_t pack_datagram(const Message& message, Datagram& out) noexcept {
  if (message.value.size() > kMaxValueBytes) return 0;
  message.header.pack(std::span(out).first<Kv::kBytes>());
  if (!message.value.empty()) std::memcpy(out.data() + Kv::kBytes, message.value.data(), message.value.size());
  return Kv::kBytes + message.value.size();
}

/// Nothing, if it is no message: too short or too long. The value is a part of `in`.
inline std::optional<Message> unpack_datagram(ByteView in) noexcept {
  if (in.size() < Kv::kBytes || in.size() > kMaxDatagram) return std::nullopt;
  return Message{Kv::unpack(in.first<Kv::kBytes>()), in.subspan(Kv::kBytes)};
}

}  // namespace wherry::kv
