// SPDX-License-Identifier: Apache-2.0
// Standard error as the last resort for messages.
#pragma once

#include <cstdio>
#include <string_view>

namespace wherry {

/// Writes a line to standard error. If standard error is closed or its disk is full, the line is lost. (fmt::print
/// would throw, and end a program before it reports its error.)
inline void error_line(std::string_view text) noexcept {
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
  (void)std::fputc('\n', stderr);
}

}  // namespace wherry
