// SPDX-License-Identifier: Apache-2.0
// Arrow's errors as Wherry's.
#pragma once

#include <string>
#include <string_view>

#include "wherry/status.hpp"

namespace arrow {
class Status;
}  // namespace arrow

namespace wherry::move {

/// Arrow's message, and the system's reason if there is one: Arrow keeps that apart.
std::string with_cause(const arrow::Status& status);
/// "what: <with_cause()>" with the nearest of Wherry's codes.
Status from_arrow(const arrow::Status& status, std::string_view what);

}  // namespace wherry::move
