// SPDX-License-Identifier: Apache-2.0
#pragma once
// Converts Arrow's errors to Wherry's.
#include <string>
#include <string_view>

#include "wherry/status.hpp"

namespace arrow {
class Status;
}  // namespace arrow

namespace wherry::move {

/// Arrow's message, with the system's reason, if any, which Arrow stores separately.
std::string with_cause(const arrow::Status& status);
/// Makes a Status with the nearest of Wherry's codes and the text "<what>: <with_cause()>".
Status from_arrow(const arrow::Status& status, std::string_view what);

}  // namespace wherry::move
