// SPDX-License-Identifier: Apache-2.0
// Measures, in virtual time, how long the keys of a dead leader cannot be written.
#pragma once

#include <optional>

#include "kv/sim/cluster.hpp"

namespace wherry::kv::sim {

/// Times since the leader's death.
struct FailoverTimes {
  Cycles published = 0;  ///< the epoch without it
  Cycles confirmed = 0;  ///< by all members
  Cycles written = 0;    ///< the first write of its keys was acknowledged
};

/// Measures one death, at a time chosen by the seed. No value: the failover took longer than 10 s.
std::optional<FailoverTimes> measure_failover(std::uint64_t seed, ClusterOptions options);

}  // namespace wherry::kv::sim
