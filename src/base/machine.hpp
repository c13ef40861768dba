// SPDX-License-Identifier: Apache-2.0
// One key names the machine of a probe run or a profile. python/wherry/system/machine.py makes the same one (tested).
#pragma once

#include <string>

namespace wherry {

/// Figures of one machine are not valid for another. A restart does not change the key.
struct MachineKey {
  std::string cpu;     ///< /proc/cpuinfo: "model name", or else the architecture
  std::string kernel;  ///< uname -r
  unsigned cores = 0;  ///< that this process's kernel has online
  bool operator==(const MachineKey&) const = default;
};

/// The key of this machine. `root`: for tests, a prefix of /proc.
[[nodiscard]] MachineKey this_machine(const std::string& root = "");
/// "AMD EPYC | 2 cores | Linux 6.1.0".
[[nodiscard]] std::string to_string(const MachineKey& machine);

}  // namespace wherry
