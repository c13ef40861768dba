// SPDX-License-Identifier: Apache-2.0
// The machine's properties that a run must report because its figures depend on them.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace wherry::probe {

/// By name: the machine's properties as text, "unknown" if the machine
/// does not report one. `root`: for tests, a prefix of /proc and /sys.
///
/// Names: cpu and kernel (base/machine.hpp), numa_nodes, smt, governor,
/// frequency_max_mhz, hypervisor, thp, hugepages, iommu, memlock, preemption, load.
[[nodiscard]] std::map<std::string, std::string> environment(const std::string& root = "");

/// Turns "0-2,5" into 0, 1, 2, 5. Empty if the text is not a list in the kernel's format.
[[nodiscard]] std::vector<unsigned> parse_list(const std::string& text);

/// The NUMA nodes that are online; one node if the machine does not report them.
[[nodiscard]] std::vector<unsigned> numa_nodes(const std::string& root = "");

}  // namespace wherry::probe
