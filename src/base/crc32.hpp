// SPDX-License-Identifier: Apache-2.0
// CRC-32 as in zlib, gzip and PNG (RFC 1952, section 8), so other programs can check our files.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.hpp"

namespace wherry {
namespace detail {

/// Row k: how a byte that is followed by k bytes changes the sum ("slicing by 8": M. Kounavis, F. Berry, "A systematic
/// approach to building high performance software-based CRC generators", ISCC 2005).
constexpr std::array<std::array<std::uint32_t, 256>, 8> make_crc32_table() noexcept {
  constexpr std::uint32_t kPolynomial = 0xedb88320;  // 0x04c11db7 of IEEE 802.3, reflected
  std::array<std::array<std::uint32_t, 256>, 8> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t sum = byte;
    for (int bit = 0; bit < 8; ++bit) sum = (sum & 1) != 0 ? sum >> 1 ^ kPolynomial : sum >> 1;
    table[0][byte] = sum;
  }
  for (std::size_t row = 1; row < table.size(); ++row)
    for (std::size_t byte = 0; byte < 256; ++byte)
      table[row][byte] = table[row - 1][byte] >> 8 ^ table[0][table[row - 1][byte] & 0xff];
  return table;
}
inline constexpr auto kCrc32Table = make_crc32_table();

}  // namespace detail

/// `before`: the sum of the preceding bytes.
[[nodiscard]] inline std::uint32_t crc32(ByteView bytes, std::uint32_t before = 0) noexcept {
  const auto& table = detail::kCrc32Table;
  std::uint32_t sum = ~before;
  while (bytes.size() >= 8) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, bytes.data(), sizeof eight);
    eight ^= sum;
    sum = 0;
    for (std::size_t i = 0; i < 8; ++i) sum ^= table[7 - i][eight >> 8 * i & 0xff];
    bytes = bytes.subspan(8);
  }
  for (const std::byte byte : bytes) sum = sum >> 8 ^ table[0][(sum ^ std::to_integer<std::uint32_t>(byte)) & 0xff];
  return ~sum;
}

}  // namespace wherry
