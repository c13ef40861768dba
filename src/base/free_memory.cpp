// SPDX-License-Identifier: Apache-2.0
#include "base/free_memory.hpp"

#include <sys/statvfs.h>

#include <fstream>
#include <limits>

namespace wherry {

FreeMemory free_memory(const std::string& directory) {
  FreeMemory least{.bytes = std::numeric_limits<std::uint64_t>::max(), .where = "memory"};
  std::ifstream kernel("/proc/meminfo");
  std::string name, unit;
  for (std::uint64_t kib = 0; kernel >> name >> kib && std::getline(kernel, unit);) {
    if (name == "MemAvailable:") least.bytes = kib << 10;
  }
  struct statvfs there{};
  if (::statvfs(directory.c_str(), &there) == 0) {
    const std::uint64_t left = std::uint64_t{there.f_bavail} * there.f_frsize;
    if (there.f_blocks != 0 && left < least.bytes) least = {left, directory};
  }
  return least;
}

}  // namespace wherry
