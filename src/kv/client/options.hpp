// SPDX-License-Identifier: Apache-2.0
#pragma once
// A client's options after reading the cluster file and resolving names.
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "base/socket.hpp"
#include "kv/client/core.hpp"
#include "wherry/kv.hpp"

namespace wherry::kv {

struct ClientPlan {
  ClientCore::Options core;       ///< nodes: none, if the keeper is to say
  std::vector<HostPort> keepers;  ///< to grant the lanes; empty: none are wanted, or they are static
  std::string cluster;            ///< its name; empty: not known
  std::string origin;             ///< the cluster file that named the nodes; empty: the options did
  bool names_nodes = false;
};

/// Checks the options and the cluster file. kInvalidArgument: one of them is wrong.
Result<ClientPlan> plan_client(const ClientOptions& options);
/// Sets the nodes' addresses from the keeper's message. kInvalidArgument: the cluster file has other addresses.
wherry::Status take_nodes(ClientPlan& plan, const std::array<Endpoint, kMaxNodes>& nodes);

/// Converts a time; a negative one becomes 0.
constexpr Cycles to_cycles(std::chrono::nanoseconds time) noexcept {
  return static_cast<Cycles>(std::max<std::int64_t>(time.count(), 0)) / kCycleNs;
}
inline wherry::Status invalid_option(std::string what) { return {StatusCode::kInvalidArgument, std::move(what)}; }

}  // namespace wherry::kv
