// SPDX-License-Identifier: Apache-2.0
// The first exchange of ranks whose launcher does not say which of them share a node: MPI's and PMIx's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "route/client/bootstrap.hpp"

namespace wherry::route {

struct Meeting {
  std::uint32_t node = 0;
  std::uint64_t job = 0;
};

/// WHERRY_RANKS_PER_NODE; 0: it is unset.
Result<std::uint32_t> ranks_per_node();
/// Collective, through `bootstrap`, which knows its rank.
Result<Meeting> meet(Bootstrap& bootstrap, std::uint32_t ranks_per_node, const Deadline& deadline);

/// Numbers the nodes in the order of their first ranks. A host with more than `ranks_per_node` ranks is divided into
/// several nodes; 0: no host is.
std::vector<std::uint32_t> number_nodes(const std::vector<std::string>& host_of_rank, std::uint32_t ranks_per_node);

}  // namespace wherry::route
