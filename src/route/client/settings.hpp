// SPDX-License-Identifier: Apache-2.0 The settings of a rank: from Options, else the environment, else defaults.
#pragma once

#include <cstdint>
#include <string>

#include "fabric/stream_worker.hpp"
#include "route/ring.hpp"
#include "wherry/route.hpp"

namespace wherry::route {

/// Whether the options can be obeyed, as far as they need no environment. kInvalidArgument.
Status check(const Options& options);
/// The source of the shape of a rank's buffers.
enum class ShapeFrom : std::uint8_t {
  kDefault,
  kProfile,  ///< of this machine (docs/guide/profile.md)
  kPerson,   ///< Options, WHERRY_ROUTE_BUFFER_BYTES, WHERRY_ROUTE_BUFFERS
};

/// The buffers towards each next hop that this rank would take if it were alone.
struct ResolvedShape {
  RingShape shape;
  ShapeFrom from = ShapeFrom::kDefault;
  std::string why;  ///< the profile's file, or why there is none that could be used; empty: nothing to say
};

/// A person's settings take priority over the profile, which is read if `may_read_profile`. kInvalidArgument: a value
/// is out of range, or a person named a profile (WHERRY_PROFILE) that cannot be used. One in the default place that
/// cannot be used is not an error.
Result<ResolvedShape> resolve_shape(const Options& options, bool may_read_profile = false);
/// WHERRY_PLACEMENT.
Result<Placement> resolve_placement(const Options& options);
/// For TCP connections: WHERRY_ROUTE_LISTEN, WHERRY_PEER_TIMEOUT_S, WHERRY_TLS_*.
Result<fabric::StreamOptions> network_options();

}  // namespace wherry::route
