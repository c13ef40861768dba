// SPDX-License-Identifier: Apache-2.0
#pragma once
// The settings of a rank: from Options, else the environment, else defaults.
#include <cstdint>
#include <string>

#include "fabric/stream_worker.hpp"
#include "route/ring.hpp"
#include "wherry/route.hpp"

namespace wherry::route {

/// Checks the options that do not depend on the environment. kInvalidArgument.
Status check(const Options& options);
/// Where the shape of a rank's buffers comes from.
enum class ShapeFrom : std::uint8_t {
  kDefault,
  kProfile,  ///< of this machine (docs/guide/profile.md)
  kPerson,   ///< Options, WHERRY_ROUTE_BUFFER_BYTES, WHERRY_ROUTE_BUFFERS
};

/// The shape of buffers to each next hop that this rank would choose alone.
struct ResolvedShape {
  RingShape shape;
  ShapeFrom from = ShapeFrom::kDefault;
  std::string why;  ///< the profile's file, or why there is none that could be used; empty: nothing to say
};

/// User settings override the profile, which is read if `may_read_profile`. kInvalidArgument: a value is out
/// of range, or the profile that WHERRY_PROFILE names is unusable. An unusable default profile is not an
/// error.
Result<ResolvedShape> resolve_shape(const Options& options, bool may_read_profile = false);
/// The placement from the options or WHERRY_PLACEMENT.
Result<Placement> resolve_placement(const Options& options);
/// Options of TCP connections: WHERRY_ROUTE_LISTEN, WHERRY_PEER_TIMEOUT_S, WHERRY_TLS_*.
Result<fabric::StreamOptions> network_options();

}  // namespace wherry::route
