// SPDX-License-Identifier: Apache-2.0
// Handlers of the library's own. Their messages are not counted as the application's, but for replies.
#pragma once

#include <cstdint>

#include "wherry/route_message.hpp"

namespace wherry::route {

enum Internal : std::uint32_t {
  kFragmentHandler = 1,
  kReportHandler,
  kVerdictHandler,
  kReplyHandler,
  kAbortHandler,  ///< text: why the job is over
  kFirstUserHandler = 16
};
static_assert(kAbortHandler < kPackHandler &&
              kPackHandler < kFirstUserHandler);  // that one stands in the public header

}  // namespace wherry::route
