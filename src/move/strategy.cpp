// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <array>

#include "wherry/move.hpp"

namespace wherry {

namespace {
constexpr std::array<std::string_view, 6> kStrategies{"raw", "arrays",           "record_batch",
                                                      "ipc", "ipc_page_aligned", "c_abi"};
}

std::string_view to_string(Strategy strategy) noexcept { return kStrategies[static_cast<std::size_t>(strategy)]; }

Result<Strategy> parse_strategy(std::string_view name) {
  for (std::size_t i = 0; i < kStrategies.size(); ++i) {
    if (kStrategies[i] == name) return static_cast<Strategy>(i);
  }
  return Status(StatusCode::kInvalidArgument,
                fmt::format("strategy '{}' is none of raw, arrays, record_batch, ipc, ipc_page_aligned, c_abi", name));
}

}  // namespace wherry
