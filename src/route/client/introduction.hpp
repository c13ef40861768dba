// SPDX-License-Identifier: Apache-2.0
// The first thing that ranks tell each other: where they are, and what they were told to do, on which all must agree.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "fabric/stream_worker.hpp"
#include "route/client/bootstrap.hpp"
#include "route/client/wiring.hpp"
#include "wherry/session.hpp"

namespace wherry::route {

struct Introduction {
  std::uint32_t node = 0;
  Placement placement = Placement::kInline;
  RingShape shape;
  std::string host;                      ///< host_identity()
  bool memory_between_nodes = true;      ///< nodes of one machine may use its memory (WHERRY_ROUTE_BETWEEN)
  Transport network = Transport::kAuto;  ///< otherwise
};

/// From the options and the environment, whose variables are checked.
Result<Introduction> introduce(const Options& options, const Bootstrap& bootstrap);
Bytes encode(const Introduction& introduction);
/// Decodes everybody's. kFailedPrecondition names the first rank that was told something else than `mine`.
Result<std::vector<Introduction>> agree(const Introduction& mine, Rank rank, const std::vector<Bytes>& all);
Topology topology_of(const std::vector<Introduction>& all);
/// Whether two ranks, or the agents of their nodes, write into each other's memory.
[[nodiscard]] bool reached_by_memory(const Introduction& a, const Introduction& b) noexcept;
/// The transport between machines, the same on every rank: the one that was asked for, or of `auto` the best one that
/// all have. kAuto: there is nothing between machines. `has_rdma`: whether this rank, or the agent that routes for it,
/// has RDMA; not asked without need. Collective.
Result<Transport> choose_network(const Introduction& mine, const std::vector<Introduction>& all, Bootstrap& bootstrap,
                                 const Deadline& deadline, const std::function<Result<bool>()>& has_rdma);
/// What describes the ring and placement that `options` and the environment ask for.
/// Whether what needs no environment can be obeyed; kInvalidArgument.
Status check(const Options& options);
Result<RingShape> resolve_shape(const Options& options);
Result<Placement> resolve_placement(const Options& options);
/// Of connections over TCP: $WHERRY_ROUTE_LISTEN, $WHERRY_PEER_TIMEOUT_S, $WHERRY_TLS_*.
Result<fabric::StreamOptions> network_options();

Result<std::unique_ptr<Wiring>> wire_inline(const Introduction& mine, const std::vector<Introduction>& all,
                                            std::unique_ptr<Bootstrap> bootstrap, const Deadline& deadline);
Result<std::unique_ptr<Wiring>> wire_agents(const Introduction& mine, const std::vector<Introduction>& all,
                                            std::unique_ptr<Bootstrap> bootstrap, const Deadline& deadline);

}  // namespace wherry::route
