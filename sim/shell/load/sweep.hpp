// SPDX-License-Identifier: Apache-2.0
// The loads that `shell_bench --load` runs, as JSON. docs/design/shell-load.md names the columns.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sim/shell/load/load.hpp"

namespace wherry::sim::shell::load {

/// `packets`: of each run. 1000 of them take some seconds of CPU.
[[nodiscard]] nlohmann::json sweep(const Parameters& parameters, std::uint32_t packets);

}  // namespace wherry::sim::shell::load
