// SPDX-License-Identifier: Apache-2.0
// The first exchange of ranks whose launcher (MPI, PMIx) does not report which ranks share a node.
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

/// The value of WHERRY_RANKS_PER_NODE; 0: it is unset.
Result<std::uint32_t> ranks_per_node();
/// Collective. Uses `bootstrap`, which must know this process's rank.
Result<Meeting> meet(Bootstrap& bootstrap, std::uint32_t ranks_per_node, const Deadline& deadline);

/// Numbers the nodes in the order of their first ranks. A host with more than `ranks_per_node` ranks is divided into
/// several nodes; 0: hosts are not divided.
std::vector<std::uint32_t> number_nodes(const std::vector<std::string>& host_of_rank, std::uint32_t ranks_per_node);

}  // namespace wherry::route
