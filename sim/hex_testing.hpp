// SPDX-License-Identifier: Apache-2.0
// For tests: reads frames that are written as hexadecimal text.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

namespace wherry::sim::testing_support {

/// Converts lower-case hexadecimal digits to bytes; spaces do not count.
inline std::vector<std::byte> bytes_of(std::string_view text) {
  std::vector<std::byte> bytes;
  unsigned digits = 0, value = 0;
  for (const char c : text) {
    if (c == ' ') continue;
    value = value * 16 + static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
    if (++digits % 2 == 0) bytes.push_back(static_cast<std::byte>(std::exchange(value, 0)));
  }
  return bytes;
}

}  // namespace wherry::sim::testing_support
