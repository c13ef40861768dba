// SPDX-License-Identifier: Apache-2.0
// The running process does nothing but hold what VFIO gave it; asked at its socket, it says what card and NIC count.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>

#include "wherry/status.hpp"

namespace wherry::bypass {

/// Listens at a Unix socket, and writes `answer()` to each who connects. Sleeps in between, until a signal sets `stop`
/// (base/program.hpp). Blocks.
Status serve_status(const std::string& socket, const std::function<std::string()>& answer,
                    const std::atomic<bool>& stop);
/// What the process there answers. kUnavailable: nobody listens; kDeadlineExceeded: it runs, and does not answer, since
/// it was stopped (SIGSTOP) say.
Result<std::string> ask_status(const std::string& socket, std::chrono::milliseconds limit);

}  // namespace wherry::bypass
