// SPDX-License-Identifier: Apache-2.0
// Logging rules: an error is logged once, where it is decided; callers pass it up silently. Nothing is logged on a path
// that runs per offload. Would-block is never logged.
#pragma once

#include <spdlog/spdlog.h>

#include <string>

#include "wherry/status.hpp"

namespace wherry {

/// Sends the log to stderr, or to `file` (appending). Level: trace, debug, info, warn, error, off.
Status init_log(const std::string& level, const std::string& file);

}  // namespace wherry
