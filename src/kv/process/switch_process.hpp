// SPDX-License-Identifier: Apache-2.0
// An XdpSwitch as a process: it switches frames until the process ends.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "wherry/status.hpp"

namespace wherry::kv {

/// `stations`: texts like "eth0=02:00:00:00:00:01". Runs until `stop` is set.
wherry::Status run_switch(const std::vector<std::string>& stations, const std::atomic<bool>& stop);

}  // namespace wherry::kv
