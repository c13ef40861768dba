// SPDX-License-Identifier: Apache-2.0
// Lanes for clients: docs/design/kv-protocol.md, section 7.
#include <fmt/core.h>

#include "kv/keeper/keeper.hpp"

namespace wherry::kv {

FromKeeper Keeper::open_lanes(std::uint64_t holder, const OpenLanes& open, Cycles now) {
  if (!open.cluster.empty() && open.cluster != options_.cluster)
    return Answer{.text = fmt::format("this is the keeper of cluster '{}', not '{}'", options_.cluster, open.cluster),
                  .lasting = true};
  if (open.lanes > lanes_.lanes()) {
    return Answer{.text = fmt::format("{} lanes are wanted, and cluster '{}' grants {} in all: {} of its {} are static",
                                      open.lanes, options_.cluster, lanes_.lanes(), options_.lanes - lanes_.lanes(),
                                      options_.lanes),
                  .exhausted = true,
                  .lasting = true};
  }
  GrantedLanes granted{.ttl = options_.ping_interval};
  for (std::uint32_t node = 0; node < kMaxNodes; ++node)
    if (options_.nodes[node].configured) granted.nodes[node] = options_.nodes[node].endpoint;
  if (phase_ == Phase::deposed || !mandated(now)) return granted;  // not yet, or not any more
  std::optional<LaneGrants::Grant> grant;
  if (open.resume) grant = lanes_.reclaim(holder, open.session, open.first, open.lanes, open.grant, now);
  if (!grant) {
    if (!lanes_.begun(now) || phase_ != Phase::running) return granted;
    grant = lanes_.grant(holder, open.lanes, open.session, now);
  }
  if (!grant) {
    return Answer{.text = fmt::format("{} lanes in a row are not free: {} of {} are granted to {} clients; ask for "
                                      "fewer, or end other clients",
                                      open.lanes, lanes_.granted(), lanes_.lanes(), lanes_.count()),
                  .exhausted = true};
  }
  granted.session = grant->session;
  granted.first = grant->first;
  granted.lanes = grant->count;
  granted.ttl = options_.lane_ttl;
  granted.grant = grant->number;
  return granted;
}

}  // namespace wherry::kv
