// SPDX-License-Identifier: Apache-2.0
// The properties of the machine that a run must report, since figures depend on them.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace wherry::probe {

/// By name: this machine's property as text. "unknown" if the machine does not report it. `root`: for tests, a path
/// before /proc and /sys.
///
/// cpu and kernel (base/machine.hpp), numa_nodes, smt, governor, frequency_max_mhz, hypervisor, thp, hugepages, iommu,
/// memlock, preemption, load.
[[nodiscard]] std::map<std::string, std::string> environment(const std::string& root = "");

/// "0-2,5" as 0, 1, 2, 5. Empty if it is not a list in the kernel's format.
[[nodiscard]] std::vector<unsigned> parse_list(const std::string& text);

/// NUMA nodes that are online; one if the machine does not tell.
[[nodiscard]] std::vector<unsigned> numa_nodes(const std::string& root = "");

}  // namespace wherry::probe
