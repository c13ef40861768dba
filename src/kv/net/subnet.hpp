// SPDX-License-Identifier: Apache-2.0
// IPv4 subnets: the sources that a node answers.
#pragma once

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace wherry::kv {

struct Subnet {
  std::uint32_t ip = 0;    ///< host byte order, without the bits below the mask
  std::uint32_t mask = 0;  ///< host byte order

  [[nodiscard]] constexpr bool has(std::uint32_t address) const noexcept { return (address & mask) == ip; }
  /// Parses "10.0.0.0/24", or "10.0.0.7" for a single address.
  static std::optional<Subnet> parse(const std::string& text) {
    const std::size_t slash = text.find('/');
    unsigned bits = 32;
    if (slash != std::string::npos) {
      const char* const end = text.data() + text.size();
      const auto [last, error] = std::from_chars(text.data() + slash + 1, end, bits);
      if (error != std::errc() || last != end || bits > 32) return std::nullopt;
    }
    in_addr address{};
    if (inet_pton(AF_INET, text.substr(0, slash).c_str(), &address) != 1) return std::nullopt;
    const std::uint32_t mask = bits == 0 ? 0 : ~std::uint32_t{0} << (32 - bits);
    return Subnet{.ip = ntohl(address.s_addr) & mask, .mask = mask};
  }
  friend constexpr bool operator==(const Subnet&, const Subnet&) = default;
};

/// Returns the fewest subnets that contain the same addresses. Precondition: each mask is a prefix.
inline std::vector<Subnet> merged(std::vector<Subnet> all) {
  std::ranges::sort(all, [](const Subnet& a, const Subnet& b) { return a.ip != b.ip ? a.ip < b.ip : a.mask < b.mask; });
  std::vector<Subnet> kept;
  for (const Subnet& subnet : all) {
    if (!kept.empty() && kept.back().mask <= subnet.mask && kept.back().has(subnet.ip)) continue;
    kept.push_back(subnet);
    // Join two halves of a larger subnet, which may itself be a half.
    while (kept.size() > 1) {
      const Subnet low = kept[kept.size() - 2], high = kept.back();
      const std::uint32_t mask = high.mask << 1;
      if (low.mask != high.mask || (low.ip ^ high.ip) != (high.mask ^ mask)) break;
      kept.pop_back();
      kept.back() = {.ip = low.ip & mask, .mask = mask};
    }
  }
  return kept;
}

/// A set of subnets. One thread at a time.
class Subnets {
 public:
  void add(const Subnet& subnet) { all_.push_back(subnet); }
  [[nodiscard]] bool has(std::uint32_t address) noexcept {
    if (address == last_ && known_) return true;  // most frames come from a few
    for (const Subnet& subnet : all_) {
      if (!subnet.has(address)) continue;
      last_ = address;
      return known_ = true;
    }
    return false;
  }
  [[nodiscard]] bool empty() const noexcept { return all_.empty(); }
  [[nodiscard]] const std::vector<Subnet>& all() const noexcept { return all_; }

 private:
  std::vector<Subnet> all_;
  std::uint32_t last_ = 0;
  bool known_ = false;
};

}  // namespace wherry::kv
