// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace wherry::kv {

/// "02:00:00:00:00:01", six bytes of two digits each; nothing if it is no such text.
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

}  // namespace wherry::kv
