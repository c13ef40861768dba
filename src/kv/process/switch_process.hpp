// SPDX-License-Identifier: Apache-2.0
// An XdpSwitch as a process: it switches for as long as it lives.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "wherry/status.hpp"

namespace wherry::kv {

/// "eth0=02:00:00:00:00:01", each. Until `stop`.
wherry::Status run_switch(const std::vector<std::string>& stations, const std::atomic<bool>& stop);

}  // namespace wherry::kv
