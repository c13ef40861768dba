// SPDX-License-Identifier: Apache-2.0
// Runs the Verilated core as a live node, on a UDP socket or on TAP devices.
#pragma once

#include <atomic>
#include <optional>

#include "kv/node/driver/served_node.hpp"
#include "sim/core.hpp"
#include "sim/live_link.hpp"
#include "wherry/status.hpp"

namespace wherry::kv::rtl {

struct LiveNodeOptions : ServedNode {
  CoreOptions core;
  std::string keys;              ///< the socket where it lists its keys (KeyWindow)
  std::optional<TapNames> taps;  ///< none: a UDP socket at the node's address
};

/// Runs until `stop`. Errors: the cluster has no such node, or its address or devices are not available.
wherry::Status run_live_node(const LiveNodeOptions& options, const std::atomic<bool>& stop);

}  // namespace wherry::kv::rtl
