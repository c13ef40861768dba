// SPDX-License-Identifier: Apache-2.0
// For tests: frames to the card and the answers of its functions, written by hand from the RFCs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "sim/hex_testing.hpp"

namespace wherry::sim::testing_support {

using Bytes = std::vector<std::byte>;

// NIC: 52:54:00:12:34:56, which its model loads from its EEPROM. Sender: 02:00:00:00:00:01 and 10.90.0.1.
inline const auto kWhoHas = bytes_of(
    "ffffffffffff 020000000001 0806 0001 0800 06 04 0001 020000000001 0a5a0001 000000000000 0a5a0002 "
    "000000000000000000000000000000000000");
inline const auto kIsAt = bytes_of(
    "020000000001 525400123456 0806 0001 0800 06 04 0002 525400123456 0a5a0002 020000000001 0a5a0001 "
    "000000000000000000000000000000000000");
inline const auto kPing = bytes_of(
    "525400123456 020000000001 0800 4500 0024 0000 4000 40 01 2623 0a5a0001 0a5a0002 "
    "08 00 e7e3 0007 0001 0102030405060708 00000000000000000000");
inline const auto kPong = bytes_of(
    "020000000001 525400123456 0800 4500 0024 0000 4000 40 01 2623 0a5a0002 0a5a0001 "
    "00 00 efe3 0007 0001 0102030405060708 00000000000000000000");
/// UDP without a checksum, 8 bytes of data, from port 1000 to `port`.
inline Bytes datagram(unsigned port) {
  Bytes frame = bytes_of(
      "525400123456 020000000001 0800 4500 0024 0000 4000 40 11 2613 0a5a0001 0a5a0002 "
      "03e8 0000 0010 0000 0102030405060708 00000000000000000000");
  frame[36] = static_cast<std::byte>(port >> 8);
  frame[37] = static_cast<std::byte>(port & 0xFF);
  return frame;
}
inline Bytes reflected(Bytes frame) {
  std::swap_ranges(frame.begin(), frame.begin() + 6, frame.begin() + 6);
  return frame;
}

}  // namespace wherry::sim::testing_support
