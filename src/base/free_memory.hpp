// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace wherry {

/// The memory that can still be allocated, and the name of the limit.
struct FreeMemory {
  std::uint64_t bytes = 0;
  std::string where;  ///< the directory, "memory", or "the control group (its limit's file)"
};

/// The files that list the control groups of this process, and where the groups are mounted.
struct ControlGroups {
  std::string membership = "/proc/self/cgroup";
  std::string root = "/sys/fs/cgroup";
};

/// The smallest of: MemAvailable (/proc/meminfo), the free space of the file system at `directory`, and the remaining
/// memory of the process's control group and of each group above it (version 1 or 2). A directory that does not exist
/// (such as "") and a group without a limit are ignored.
FreeMemory free_memory(const std::string& directory, const ControlGroups& groups = {});

}  // namespace wherry
