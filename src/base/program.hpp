// SPDX-License-Identifier: Apache-2.0 How Wherry's programs end: signals, errors and exit statuses.
#pragma once

#include <atomic>
#include <string_view>

#include "wherry/status.hpp"

namespace wherry {

/// A flag that SIGTERM and SIGINT set, from this call on. SIGPIPE is ignored: a write to a closed connection reports
/// the error.
const std::atomic<bool>& stop_on_signals();
/// Sets the umask so that files stay accessible to their owner. Call it before other threads exist.
void keep_owners_rights();
/// Prints "program: why" on standard error, if it is writable. Returns the exit status: 2 if the input was wrong, else
/// 1.
int exit_status(std::string_view program, const Status& why);

}  // namespace wherry
