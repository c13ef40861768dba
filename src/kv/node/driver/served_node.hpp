// SPDX-License-Identifier: Apache-2.0
// A node that a process serves, in software or as the simulated core, with its part of the cluster file.
#pragma once

#include <string>
#include <vector>

#include "base/socket.hpp"
#include "kv/control/cluster_file.hpp"
#include "kv/node/driver/driver.hpp"
#include "wherry/status.hpp"

namespace wherry::kv {

struct ServedNode {
  ClusterFile cluster;
  std::uint32_t number = 0;
  std::vector<HostPort> keepers;  ///< empty in mode static
  bool accept = false;  ///< as the cluster file's policy "accept", and the register `control.accept`; memory of a
                        ///< software node answers at once anyway
};

/// Sets `cluster` and `keepers`: the keepers of `at` (host:port) or, if `at` is empty, of the file. kInvalidArgument:
/// names the file, or the text that is not host:port.
wherry::Status load_cluster(ServedNode& node, const std::string& path, const std::vector<std::string>& at);
/// kInvalidArgument: the cluster has no such node.
wherry::Status check_number(const ServedNode& node);
/// Options for the node's driver. `sources` are this process's allowed_sources().
DriverOptions driver_options(const ServedNode& node);

}  // namespace wherry::kv
