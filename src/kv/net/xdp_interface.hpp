// SPDX-License-Identifier: Apache-2.0
// The form in which users name interfaces for AF_XDP: "eth0", "eth0:3" for its queue 3, or several: "eth0,eth1:3".
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wherry::kv {

struct XdpInterface {
  static constexpr const char* kWanted =
      "want an interface, as eth0, or with its queue, as eth0:3, or several, as eth0,eth1";

  std::string name;
  std::uint32_t queue = 0;

  /// No value if the text has another form. XdpPort::open checks whether the interface exists.
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
  /// Parses one or more interfaces. Each may occur only once.
  static std::optional<std::vector<XdpInterface>> parse_all(std::string_view text) {
    constexpr std::size_t kMost = 8;
    std::vector<XdpInterface> all;
    std::size_t comma = 0;
    while (comma != std::string_view::npos && all.size() < kMost) {
      comma = text.find(',');
      auto one = parse(text.substr(0, comma));
      if (!one || std::ranges::find(all, one->name, &XdpInterface::name) != all.end()) return std::nullopt;
      all.push_back(*std::move(one));
      text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
    }
    return comma == std::string_view::npos ? std::optional(std::move(all)) : std::nullopt;
  }
};

}  // namespace wherry::kv
