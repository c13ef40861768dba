// SPDX-License-Identifier: Apache-2.0
// Rules of the protocol that a node can be made to break, so that tests show whether their checks notice it. The
// delivered node breaks no rule and has no code for it, because NoFaults answers with a constant. Nodes with faults are
// another class, only for tests: any_node_testing.hpp.
#pragma once

#include <cstdint>

namespace wherry::kv {

enum class NodeFault : std::uint8_t {
  serve_pending_reads,     ///< followers show writes that are not committed
  skip_lane_check,         ///< a repeated request is a new one
  commit_before_all,       ///< the first answer commits
  forget_fence,            ///< frames of other epochs are as good
  keep_leftovers,          ///< leftovers are believed, not settled
  ignore_lease,            ///< a node that lost its lease goes on answering
  forget_refusals,         ///< refusals are not recorded
  keep_rolled_back_lanes,  ///< what was rolled back stays in its lane's record
  forget_unsettled,        ///< a write that comes again leaves its lane's record settled
  tell_leftovers,          ///< of a lane whose write is leftover, the request before it is told
  keep_lagging_versions,   ///< a location whose version lags is not refreshed
  ignore_other_flights,    ///< of writes in flight, only those to the key's first bucket count
  ignore_other_versions,   ///< a new key's version is that of its bucket, wherever the key was before
  open_early,              ///< a leader takes writes before all members have entered
};

struct NoFaults {
  [[nodiscard]] static constexpr bool has(NodeFault /*fault*/) noexcept { return false; }
};

}  // namespace wherry::kv
