// SPDX-License-Identifier: Apache-2.0
// The part of HTTP/2 (RFC 9113) that a gRPC client needs for small requests to one trusted server.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.hpp"

namespace wherry::kv::bench::http2 {

enum class Type : std::uint8_t { data = 0, headers = 1, reset = 3, settings = 4, ping = 6, go_away = 7 };
inline constexpr std::uint32_t kNoError = 0;
inline constexpr std::uint8_t kEndStream = 1, kAck = 1, kEndHeaders = 4;
inline constexpr std::size_t kHeaderBytes = 9;
inline constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

struct Frame {
  std::uint8_t type = 0, flags = 0;
  std::uint32_t stream = 0;
  ByteView payload;
};

/// The first frame of the received bytes, or nullopt if it is not complete yet.
inline std::optional<Frame> first_frame(ByteView arrived) noexcept {
  if (arrived.size() < kHeaderBytes) return std::nullopt;
  const auto at = [&](std::size_t i) { return std::to_integer<std::uint32_t>(arrived[i]); };
  const std::size_t length = at(0) << 16 | at(1) << 8 | at(2);
  if (arrived.size() < kHeaderBytes + length) return std::nullopt;
  return Frame{.type = static_cast<std::uint8_t>(at(3)),
               .flags = static_cast<std::uint8_t>(at(4)),
               .stream = (at(5) & 0x7f) << 24 | at(6) << 16 | at(7) << 8 | at(8),
               .payload = arrived.subspan(kHeaderBytes, length)};
}

inline std::array<std::byte, kHeaderBytes> header(std::size_t length, Type type, std::uint8_t flags,
                                                  std::uint32_t stream) noexcept {
  const auto byte = [](std::size_t value) { return static_cast<std::byte>(value & 0xff); };
  return {byte(length >> 16),
          byte(length >> 8),
          byte(length),
          static_cast<std::byte>(type),
          static_cast<std::byte>(flags),
          byte(stream >> 24),
          byte(stream >> 16),
          byte(stream >> 8),
          byte(stream)};
}

/// The error code of a frame of type reset or go_away (sections 6.4 and 6.8), or nullopt if the frame is too short.
inline std::optional<std::uint32_t> error_code(const Frame& frame) noexcept {
  const std::size_t begin = frame.type == static_cast<std::uint8_t>(Type::go_away) ? 4 : 0;
  if (frame.payload.size() < begin + 4) return std::nullopt;
  std::uint32_t code = 0;
  for (const std::byte byte : frame.payload.subspan(begin, 4)) code = code << 8 | std::to_integer<std::uint32_t>(byte);
  return code;
}

/// The header block of a gRPC call (HPACK, RFC 7541). It does not depend on earlier blocks. Texts are shorter than 127
/// bytes.
inline std::string grpc_headers(std::string_view path, std::string_view authority) {
  const auto text = [](std::string_view value) {
    return std::string(1, static_cast<char>(value.size())) + std::string(value);
  };
  std::string block{"\x83\x86"};                                // :method POST, :scheme http
  block += std::string(1, '\x04') + text(path);                 // :path
  block += std::string(1, '\x01') + text(authority);            // :authority
  block += std::string("\x0f\x10") + text("application/grpc");  // content-type
  block += std::string(1, '\0') + text("te") + text("trailers");
  return block;
}

}  // namespace wherry::kv::bench::http2
