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

/// Where the kernel says which control groups this process is in, and where they are mounted.
struct ControlGroups {
  std::string membership = "/proc/self/cgroup";
  std::string root = "/sys/fs/cgroup";
};

/// The smallest of MemAvailable (/proc/meminfo), the free space of the file system at `directory`, and the rest of the
/// memory limits of the process's control group and of the groups above it (version 1 or 2). A directory that does not
/// exist, such as "", does not count, nor does a group without a limit.
FreeMemory free_memory(const std::string& directory, const ControlGroups& groups = {});

}  // namespace wherry
