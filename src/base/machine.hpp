// SPDX-License-Identifier: Apache-2.0
// Which machine figures are of: the one key that runs of `wherry probe` and path profiles share.
// `python/wherry/system/machine.py` reads the same; a test holds the two to each other.
#pragma once

#include <string>

namespace wherry {

/// Figures of one machine are no use on another. A machine that was started again is the same.
struct MachineKey {
  std::string cpu;     ///< /proc/cpuinfo: "model name", or else the architecture
  std::string kernel;  ///< uname -r
  unsigned cores = 0;  ///< that this process's kernel has online
  bool operator==(const MachineKey&) const = default;
};

/// This machine's. `root`: for tests, before /proc.
[[nodiscard]] MachineKey this_machine(const std::string& root = "");
/// "AMD EPYC | 2 cores | Linux 6.1.0".
[[nodiscard]] std::string to_string(const MachineKey& machine);

}  // namespace wherry
