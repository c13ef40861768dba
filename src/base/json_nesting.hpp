// SPDX-License-Identifier: Apache-2.0
// Measures the nesting depth of JSON text before it is parsed. nlohmann's writer and copies recurse, so unlimited
// nesting in untrusted text would overflow the stack.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace wherry {

/// The largest number of brackets and braces that are open at once, except those inside strings. Accepts any bytes. For
/// bytes that are not JSON, the result is at least the depth that a parser reaches before it stops.
constexpr std::size_t json_nesting(std::string_view text) noexcept {
  std::size_t open = 0, most = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else
        in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      most = std::max(most, ++open);
    } else if ((c == ']' || c == '}') && open != 0) {
      --open;
    }
  }
  return most;
}

}  // namespace wherry
