// SPDX-License-Identifier: Apache-2.0
// Faults of a node, chosen by a test.
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "kv/node/faults.hpp"

namespace wherry::kv {

/// A set of NodeFault.
class NodeFaults {
 public:
  constexpr NodeFaults() noexcept = default;
  constexpr NodeFaults(std::initializer_list<NodeFault> faults) noexcept {
    for (const NodeFault fault : faults) bits_ |= bit(fault);
  }
  [[nodiscard]] constexpr bool has(NodeFault fault) const noexcept { return (bits_ & bit(fault)) != 0; }
  [[nodiscard]] constexpr bool any() const noexcept { return bits_ != 0; }

 private:
  static constexpr std::uint32_t bit(NodeFault fault) noexcept { return 1U << static_cast<unsigned>(fault); }
  std::uint32_t bits_ = 0;
};

/// The faults' names, indexed by NodeFault.
inline constexpr std::array<std::string_view, 14> kNodeFaultNames{
    "serve_pending_reads",   "skip_lane_check",      "commit_before_all",      "forget_fence",     "keep_leftovers",
    "ignore_lease",          "forget_refusals",      "keep_rolled_back_lanes", "forget_unsettled", "tell_leftovers",
    "keep_lagging_versions", "ignore_other_flights", "ignore_other_versions",  "open_early",
};
static_assert(kNodeFaultNames[static_cast<std::size_t>(NodeFault::open_early)] == "open_early");

[[nodiscard]] constexpr std::optional<NodeFault> node_fault_named(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(kNodeFaultNames, name);
  if (found == kNodeFaultNames.end()) return std::nullopt;
  return static_cast<NodeFault>(found - kNodeFaultNames.begin());
}

}  // namespace wherry::kv
