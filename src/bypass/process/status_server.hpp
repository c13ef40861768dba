// SPDX-License-Identifier: Apache-2.0
// The running process only holds what VFIO gave it. On request at its socket, it reports the counters of card and NIC.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>

#include "wherry/status.hpp"

namespace wherry::bypass {

/// Listens at a Unix socket, and writes `answer()` to each process that connects. Sleeps in between, until a signal
/// sets `stop` (base/program.hpp). Blocks.
Status serve_status(const std::string& socket, const std::function<std::string()>& answer,
                    const std::atomic<bool>& stop);
/// The answer of the process there. kUnavailable: no process listens; kDeadlineExceeded: it runs and does not answer,
/// for example because it was stopped (SIGSTOP).
Result<std::string> ask_status(const std::string& socket, std::chrono::milliseconds limit);

}  // namespace wherry::bypass
