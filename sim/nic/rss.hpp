// SPDX-License-Identifier: Apache-2.0
// Receive-side scaling: the Toeplitz hash over addresses and ports, and the table that maps the hash to a queue.
// Microsoft, "RSS hashing functions"; X550 datasheet 7.1.2.8. Fields are hashed in the order of the wire.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace wherry::sim::nic {

inline constexpr std::size_t kRssKeyBytes = 40;
/// The key of Microsoft's verification suite; drivers write their own.
inline constexpr std::array<std::uint8_t, kRssKeyBytes> kRssKey{
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
    0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
    0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};

/// Precondition: the key has at least 32 + 8 * input.size() bits.
[[nodiscard]] std::uint32_t toeplitz(std::span<const std::byte> input) noexcept;

/// The hash of a frame: over addresses and ports of TCP and UDP in IPv4 and IPv6, over the addresses alone of fragments
/// and other protocols. 0 for other frames.
[[nodiscard]] std::uint32_t rss_hash(std::span<const std::byte> frame) noexcept;

/// 82599 has a table of 128 entries; here entry i holds queue i mod queues, as the drivers set it.
[[nodiscard]] constexpr std::uint32_t rss_queue(std::uint32_t hash, std::uint32_t queues) noexcept {
  return hash % 128 % queues;
}

}  // namespace wherry::sim::nic
