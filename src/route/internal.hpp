// SPDX-License-Identifier: Apache-2.0
// The library's own handlers. Their messages are not counted as application messages, except replies, and fragments and
// packs of application messages.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "wherry/route_message.hpp"

namespace wherry::route {

enum Internal : std::uint32_t {
  kFragmentHandler = 1,
  kReportHandler,
  kOutcomeHandler,
  kReplyHandler,
  kAbortHandler,     ///< JobFailure
  kLeftHandler = 7,  ///< Departure; 6 is kPackHandler, in the public header
};
static_assert(kAbortHandler < kPackHandler && kPackHandler < kLeftHandler && kLeftHandler < kFirstUserHandler);

/// The message that a rank has left the job.
struct Departure {
  Rank rank = 0;
  std::uint32_t rounds = 0;  ///< collective rounds that it has concluded
};

/// A message of the library that waits for room.
struct Notice {
  Rank to = 0;
  std::uint32_t handler = 0;
  Bytes message;
};

/// Whether a message to a departed rank can be dropped: only a message of the library that needs no answer.
[[nodiscard]] constexpr bool may_be_dropped(std::uint32_t handler) noexcept {
  return handler == kReportHandler || handler == kOutcomeHandler || handler == kAbortHandler || handler == kLeftHandler;
}

}  // namespace wherry::route
