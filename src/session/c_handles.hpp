// SPDX-License-Identifier: Apache-2.0
// The common part of the C ABI's files: the session's handle, and the checks of arguments.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/c_abi.hpp"
#include "wherry/session.hpp"
#include "wherry/wherry.h"

struct wherry_session {
  wherry::Session session;
  std::string text;          ///< of info
  std::size_t children = 0;  ///< memory, regions and streams that are open
};

namespace wherry::c_abi {

/// Converts nanoseconds; a negative time counts as 0.
inline std::chrono::nanoseconds time(std::int64_t ns) noexcept {
  return std::chrono::nanoseconds(std::max<std::int64_t>(ns, 0));
}

/// Converts `value` to an enum of the C++ API if it is in 0 .. last.
template <typename Enum>
Status take_enum(std::int32_t value, Enum last, const char* name, Enum& out) {
  if (value < 0 || value > static_cast<std::int32_t>(last))
    return invalid(fmt::format("{} = {}: want 0 to {}", name, value, static_cast<std::int32_t>(last)));
  out = static_cast<Enum>(value);
  return ok_status();
}

}  // namespace wherry::c_abi
