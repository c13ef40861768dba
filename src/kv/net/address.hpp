// SPDX-License-Identifier: Apache-2.0
// How addresses are written in files, options and messages.
#pragma once

#include <fmt/core.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kv/message.hpp"

namespace wherry::kv {

/// Parses "02:00:00:00:00:01": six bytes of two digits each. No value if the text has another form.
inline std::optional<std::uint64_t> parse_mac(std::string_view text) {
  if (text.size() != 17) return std::nullopt;
  std::uint64_t mac = 0;
  for (std::size_t i = 0; i < text.size(); i += 3) {
    unsigned byte = 0;
    const auto [end, error] = std::from_chars(text.data() + i, text.data() + i + 2, byte, 16);
    if (error != std::errc() || end != text.data() + i + 2 || (i != 15 && text[i + 2] != ':')) return std::nullopt;
    mac = mac << 8 | byte;
  }
  return mac;
}

/// Formats `ip` (host byte order, as in Endpoint) as "10.0.0.1".
[[nodiscard]] inline std::string ip_to_string(std::uint32_t ip) {
  return fmt::format("{}.{}.{}.{}", ip >> 24, ip >> 16 & 255, ip >> 8 & 255, ip & 255);
}

/// Formats an address as "10.0.0.1:19286".
[[nodiscard]] inline std::string to_string(const Endpoint& at) {
  return fmt::format("{}:{}", ip_to_string(at.ip), at.port);
}

}  // namespace wherry::kv
