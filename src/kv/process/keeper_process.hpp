// SPDX-License-Identifier: Apache-2.0
// The keeper as a process: alone with a file, or one of several that elect each other through etcd.
#pragma once

#include <atomic>
#include <string>

#include "base/socket.hpp"
#include "kv/control/cluster_file.hpp"
#include "wherry/status.hpp"

namespace wherry::kv {

struct KeeperProcessOptions {
  ClusterFile cluster;
  HostPort listen;
  std::string state_file;  ///< of the last configuration, in mode keeper
};

/// Until `stop`.
wherry::Status run_keeper(const KeeperProcessOptions& options, const std::atomic<bool>& stop);

}  // namespace wherry::kv
