// SPDX-License-Identifier: Apache-2.0
// The running process holds VFIO's file descriptors, and serves rings in host memory if there are any. On request at
// its socket, it reports the counters.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>

#include "wherry/status.hpp"

namespace wherry::bypass {

/// Listens at a Unix socket, and sends `answer()` to each process that connects. Sleeps in between. Blocks until a
/// signal sets `stop` (base/program.hpp). `work`, if given, is called in a loop instead of sleeping; an error of it
/// ends the loop and is returned.
Status serve_status(const std::string& socket, const std::function<std::string()>& answer,
                    const std::atomic<bool>& stop, const std::function<Status()>& work = {});
/// Returns the process's answer. kUnavailable: no process listens; kDeadlineExceeded: it runs but does not answer, for
/// example because it was stopped (SIGSTOP).
Result<std::string> ask_status(const std::string& socket, std::chrono::milliseconds limit);

}  // namespace wherry::bypass
