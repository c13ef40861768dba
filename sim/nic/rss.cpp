// SPDX-License-Identifier: Apache-2.0
#include "sim/nic/rss.hpp"

#include <algorithm>

namespace wherry::sim::nic {
namespace {

constexpr std::size_t kEthernet = 14;
constexpr std::uint32_t kTcp = 6, kUdp = 17;

std::uint32_t at(std::span<const std::byte> frame, std::size_t offset) {
  return std::to_integer<std::uint32_t>(frame[offset]);
}
std::uint32_t at16(std::span<const std::byte> frame, std::size_t offset) {
  return at(frame, offset) << 8 | at(frame, offset + 1);
}

/// Hash of `addresses` bytes at `offset`, and of 4 bytes of ports at `ports`, unless that is 0.
std::uint32_t hash_of(std::span<const std::byte> frame, std::size_t offset, std::size_t addresses, std::size_t ports) {
  std::array<std::byte, 36> input{};
  std::copy_n(frame.begin() + static_cast<std::ptrdiff_t>(offset), addresses, input.begin());
  if (ports == 0) return toeplitz(std::span(input).first(addresses));
  std::copy_n(frame.begin() + static_cast<std::ptrdiff_t>(ports), 4,
              input.begin() + static_cast<std::ptrdiff_t>(addresses));
  return toeplitz(std::span(input).first(addresses + 4));
}

}  // namespace

std::uint32_t toeplitz(std::span<const std::byte> input) noexcept {
  std::uint32_t hash = 0;
  std::uint64_t window = 0;  // the key's bits from the present one on: 32 used, 8 more at hand
  for (std::size_t i = 0; i < 5; ++i) window = window << 8 | kRssKey[i];
  for (std::size_t i = 0; i < input.size(); ++i) {
    const auto byte = std::to_integer<std::uint32_t>(input[i]);
    for (unsigned bit = 0; bit < 8; ++bit) {
      if ((byte << bit & 0x80) != 0) hash ^= static_cast<std::uint32_t>(window >> (8 - bit));
    }
    window = (window << 8 | (i + 5 < kRssKey.size() ? kRssKey[i + 5] : 0U)) & 0xFF'FFFF'FFFF;
  }
  return hash;
}

std::uint32_t rss_hash(std::span<const std::byte> frame) noexcept {
  if (frame.size() < kEthernet + 20) return 0;
  const std::uint32_t type = at16(frame, 12);
  if (type == 0x0800) {
    const std::size_t header = 4 * (at(frame, kEthernet) & 0xF);
    const bool fragment = (at16(frame, kEthernet + 6) & 0x3FFF) != 0;
    const std::uint32_t protocol = at(frame, kEthernet + 9);
    const bool ports =
        (protocol == kTcp || protocol == kUdp) && !fragment && header >= 20 && frame.size() >= kEthernet + header + 4;
    return hash_of(frame, kEthernet + 12, 8, ports ? kEthernet + header : 0);
  }
  if (type == 0x86DD && frame.size() >= kEthernet + 40) {
    const std::uint32_t protocol = at(frame, kEthernet + 6);
    const bool ports = (protocol == kTcp || protocol == kUdp) && frame.size() >= kEthernet + 44;
    return hash_of(frame, kEthernet + 8, 32, ports ? kEthernet + 40 : 0);
  }
  return 0;
}

}  // namespace wherry::sim::nic
