// SPDX-License-Identifier: Apache-2.0
// How users name where AF_XDP goes: "eth0", or "eth0:3" for its queue 3.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace wherry::kv {

struct XdpInterface {
  std::string name;
  std::uint32_t queue = 0;

  /// Nothing if it is no such text. Whether there is such an interface is XdpPort::open's to say.
  static std::optional<XdpInterface> parse(std::string_view text) {
    constexpr std::size_t kLongestName = 15;  // IFNAMSIZ, less the 0
    constexpr std::uint32_t kQueues = 4096;
    XdpInterface parsed;
    if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
      const std::string_view digits = text.substr(colon + 1);
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), parsed.queue);
      if (error != std::errc() || end != digits.data() + digits.size() || parsed.queue >= kQueues) return std::nullopt;
      text = text.substr(0, colon);
    }
    if (text.empty() || text.size() > kLongestName) return std::nullopt;
    parsed.name = text;
    return parsed;
  }
};

}  // namespace wherry::kv
