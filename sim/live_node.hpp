// SPDX-License-Identifier: Apache-2.0
// The Verilated core as a live node: datagrams of a UDP socket become frames for it, and its frames datagrams.
#pragma once

#include <atomic>
#include <vector>

#include "base/socket.hpp"
#include "kv/cluster_file.hpp"
#include "sim/core.hpp"
#include "wherry/status.hpp"

namespace wherry::kv::rtl {

struct LiveNodeOptions {
  ClusterFile cluster;
  std::uint32_t number = 0;
  std::vector<HostPort> keepers;  ///< empty in mode static
  bool accept = false;            ///< as the register `control.accept`
  CoreOptions core;
};

/// Until `stop`. An error: the cluster has no such node, or the address is taken.
wherry::Status run_live_node(const LiveNodeOptions& options, const std::atomic<bool>& stop);

}  // namespace wherry::kv::rtl
