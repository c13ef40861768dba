// SPDX-License-Identifier: Apache-2.0
// What a rank was told to do: Options first, then the environment, then defaults.
#pragma once

#include "fabric/stream_worker.hpp"
#include "route/ring.hpp"
#include "wherry/route.hpp"

namespace wherry::route {

/// Whether the options can be obeyed, as far as they need no environment. kInvalidArgument.
Status check(const Options& options);
/// The buffers towards each next hop (WHERRY_ROUTE_BUFFER_BYTES, WHERRY_ROUTE_BUFFERS).
Result<RingShape> resolve_shape(const Options& options);
/// WHERRY_PLACEMENT.
Result<Placement> resolve_placement(const Options& options);
/// For TCP connections: WHERRY_ROUTE_LISTEN, WHERRY_PEER_TIMEOUT_S, WHERRY_TLS_*.
Result<fabric::StreamOptions> network_options();

}  // namespace wherry::route
