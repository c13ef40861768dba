// SPDX-License-Identifier: Apache-2.0
// What a run must say of the machine, since figures depend on it.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace wherry::probe {

/// By name: what this machine says, as text; "unknown" where it does not tell. `root`: for tests, before /proc and
/// /sys.
///
/// cpu and kernel (base/machine.hpp), numa_nodes, smt, governor, frequency_max_mhz, hypervisor, thp, hugepages, iommu,
/// memlock, preemption, load.
[[nodiscard]] std::map<std::string, std::string> environment(const std::string& root = "");

/// "0-2,5" as 0, 1, 2, 5; empty if that is no list of the kernel's.
[[nodiscard]] std::vector<unsigned> parse_list(const std::string& text);

/// NUMA nodes that are online; one if the machine does not tell.
[[nodiscard]] std::vector<unsigned> numa_nodes(const std::string& root = "");

}  // namespace wherry::probe
