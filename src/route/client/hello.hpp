// SPDX-License-Identifier: Apache-2.0
// The first message of each rank to all others: its place, and its settings, on which all ranks must agree.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "route/client/bootstrap.hpp"
#include "route/client/settings.hpp"
#include "route/ring.hpp"
#include "route/topology.hpp"
#include "wherry/session.hpp"

namespace wherry::route {

struct Hello {
  std::uint32_t node = 0;
  Placement placement = Placement::kInline;
  RingShape shape;  ///< that it would take alone; in what agree() returns, the one that all take
  ShapeFrom shape_from = ShapeFrom::kDefault;
  std::string shape_why;                 ///< ResolvedShape::why; stays here
  std::string host;                      ///< host_identity()
  bool memory_between_nodes = true;      ///< nodes of one machine may share memory (WHERRY_ROUTE_BETWEEN)
  Transport network = Transport::kAuto;  ///< elsewhere
};

/// Makes the hello from the options and from the environment, and checks the variables.
Result<Hello> make_hello(const Options& options, const Bootstrap& bootstrap);
Bytes encode(const Hello& hello);
/// Decodes the hellos of all ranks. kFailedPrecondition names the first rank whose settings differ from `mine`.
///
/// Buffers: if a user has set them on any rank, all ranks must have equal values, and ranks without a setting have the
/// defaults. Otherwise the ranks' profiles may differ or be missing: all ranks use the smallest values that any rank
/// would use alone. So all ranks reach the same result from the same hellos.
Result<std::vector<Hello>> agree(const Hello& mine, Rank rank, const std::vector<Bytes>& all);
Topology topology_of(const std::vector<Hello>& all);
/// Whether two ranks, or the agents of their nodes, can write into each other's memory.
[[nodiscard]] bool reached_by_memory(const Hello& a, const Hello& b) noexcept;
/// The transport between machines, equal on every rank: the requested one, or for kAuto the best one that all ranks
/// have. The result kAuto: no rank needs a transport. `has_rdma` returns whether this rank, or the agent that routes
/// for it, has RDMA; it is called only if needed. Collective.
Result<Transport> choose_network(const Hello& mine, const std::vector<Hello>& all, Bootstrap& bootstrap,
                                 const Deadline& deadline, const std::function<Result<bool>()>& has_rdma);

}  // namespace wherry::route
