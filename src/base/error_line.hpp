// SPDX-License-Identifier: Apache-2.0
// Standard error as the last resort.
#pragma once

#include <cstdio>
#include <string_view>

namespace wherry {

/// A line on standard error. If that is closed or on a full disk, the line is lost without further effect. (fmt::print
/// throws, which would end a program before it reports its error.)
inline void error_line(std::string_view text) noexcept {
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
  (void)std::fputc('\n', stderr);
}

}  // namespace wherry
