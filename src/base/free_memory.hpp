// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace wherry {

/// How much memory can still be allocated, and what limits it.
struct FreeMemory {
  std::uint64_t bytes = 0;
  std::string where;  ///< the directory, or "memory"
};

/// The smaller of MemAvailable (/proc/meminfo) and the free space of the file system at `directory`. A directory that
/// does not exist, such as "", and a file system without a size limit do not count.
FreeMemory free_memory(const std::string& directory);

}  // namespace wherry
