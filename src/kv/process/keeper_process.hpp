// SPDX-License-Identifier: Apache-2.0
// The keeper as a process: either alone with a file, or one of several that elect one of them through etcd.
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

/// Runs until `stop` is set.
wherry::Status run_keeper(const KeeperProcessOptions& options, const std::atomic<bool>& stop);

}  // namespace wherry::kv
