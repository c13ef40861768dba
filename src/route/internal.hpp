// SPDX-License-Identifier: Apache-2.0
// Handlers of the library's own. Their messages are not counted as the application's, but for replies.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "wherry/route_message.hpp"

namespace wherry::route {

enum Internal : std::uint32_t {
  kFragmentHandler = 1,
  kReportHandler,
  kVerdictHandler,
  kReplyHandler,
  kAbortHandler,     ///< Breakdown: why the job is over
  kLeftHandler = 7,  ///< Departure; 6 is kPackHandler, which stands in the public header
};
static_assert(kAbortHandler < kPackHandler && kPackHandler < kLeftHandler && kLeftHandler < kFirstUserHandler);

/// A rank takes no part in the job any more.
struct Departure {
  Rank rank = 0;
  std::uint32_t rounds = 0;  ///< collective rounds that it has concluded
};

/// A message of the library's own that waits for room.
struct Notice {
  Rank to = 0;
  std::uint32_t handler = 0;
  Bytes message;
};

/// Whether a message can be dropped when its rank has left: it is the library's and asks for nothing.
[[nodiscard]] constexpr bool may_be_dropped(std::uint32_t handler) noexcept {
  return handler == kReportHandler || handler == kVerdictHandler || handler == kAbortHandler || handler == kLeftHandler;
}

}  // namespace wherry::route
