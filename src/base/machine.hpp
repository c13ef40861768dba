// SPDX-License-Identifier: Apache-2.0
// Identifies the machine of measured figures, with one key for runs of `wherry probe` and for path profiles.
// `python/wherry/system/machine.py` computes the same key, and a test compares the two.
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
