// SPDX-License-Identifier: Apache-2.0
#pragma once
// How Wherry's programs end: signals, errors and exit statuses.
#include <atomic>
#include <string_view>

#include "wherry/status.hpp"

namespace wherry {

/// Returns a flag that SIGTERM and SIGINT set from now on. SIGPIPE is ignored, so a write to a closed connection
/// returns an error.
const std::atomic<bool>& stop_on_signals();
/// Sets the umask so that new files are accessible to their owner. Call it before other threads exist.
void keep_owners_rights();
/// Prints "program: why" on standard error, if that is writable. Returns the exit status: 2 if the input was wrong,
/// else 1.
int exit_status(std::string_view program, const Status& why);

}  // namespace wherry
