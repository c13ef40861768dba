// SPDX-License-Identifier: Apache-2.0
// Handlers of the library's own. Their messages are not counted as the application's, but for replies.
#pragma once

#include <cstdint>

namespace wherry::route {

enum Internal : std::uint32_t {
  kFragmentHandler = 1,
  kReportHandler,
  kVerdictHandler,
  kReplyHandler,
  kAbortHandler,  ///< text: why the job is over
  // kPackHandler is 6: wherry/route_message.hpp
  kFirstUserHandler = 16
};

}  // namespace wherry::route
