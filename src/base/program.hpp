// SPDX-License-Identifier: Apache-2.0
// How our programs end.
#pragma once

#include <atomic>
#include <string_view>

#include "wherry/status.hpp"

namespace wherry {

/// Set by SIGTERM and SIGINT, from this call on. SIGPIPE is ignored: who writes to a closed connection hears of it
/// there.
const std::atomic<bool>& stop_on_signals();
/// The umask takes nothing from the owner of what this process makes. Before there are other threads.
void keep_owners_rights();
/// Says "program: why" on standard error, if that can be written. The status to exit with: 2 when the input was wrong,
/// else 1.
int exit_status(std::string_view program, const Status& why);

}  // namespace wherry
