// SPDX-License-Identifier: Apache-2.0 Converts Arrow's errors to Wherry's.
#pragma once

#include <string>
#include <string_view>

#include "wherry/status.hpp"

namespace arrow {
class Status;
}  // namespace arrow

namespace wherry::move {

/// Arrow's message, with the system's reason if there is one: Arrow stores that separately.
std::string with_cause(const arrow::Status& status);
/// "what: <with_cause()>", where what is the argument, with the nearest of Wherry's codes.
Status from_arrow(const arrow::Status& status, std::string_view what);

}  // namespace wherry::move
