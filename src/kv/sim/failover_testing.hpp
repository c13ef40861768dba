// SPDX-License-Identifier: Apache-2.0
// How long the keys of a leader that dies cannot be written, in virtual time.
#pragma once

#include <optional>

#include "kv/sim/cluster.hpp"

namespace wherry::kv::sim {

/// Since the leader's death.
struct FailoverTimes {
  Cycles published = 0;  ///< the epoch without it
  Cycles confirmed = 0;  ///< by all members
  Cycles written = 0;    ///< the first write of its keys was acknowledged
};

/// One death, at a time from the seed. None: the failover was not over within 10 s.
std::optional<FailoverTimes> measure_failover(std::uint64_t seed, ClusterOptions options);

}  // namespace wherry::kv::sim
