// SPDX-License-Identifier: Apache-2.0
// The Verilated core as a live node, on a UDP socket or on TAP devices.
#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include "base/socket.hpp"
#include "kv/cluster_file.hpp"
#include "sim/core.hpp"
#include "sim/live_link.hpp"
#include "wherry/status.hpp"

namespace wherry::kv::rtl {

struct LiveNodeOptions {
  ClusterFile cluster;
  std::uint32_t number = 0;
  std::vector<HostPort> keepers;  ///< empty in mode static
  bool accept = false;            ///< as the register `control.accept`
  CoreOptions core;
  std::optional<TapNames> taps;  ///< none: a UDP socket at the node's address
};

/// Until `stop`. An error: the cluster has no such node, or its address or devices cannot be had.
wherry::Status run_live_node(const LiveNodeOptions& options, const std::atomic<bool>& stop);

}  // namespace wherry::kv::rtl
