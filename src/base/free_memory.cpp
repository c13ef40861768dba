// SPDX-License-Identifier: Apache-2.0
#include "base/free_memory.hpp"

#include <sys/statvfs.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>

namespace wherry {
namespace {

/// The names of a control group's files. They differ between versions 1 and 2 (the kernel's admin-guide, cgroup-v2.rst
/// and cgroup-v1/memory.rst).
struct Version {
  std::string_view limit, used, inactive, active;
};
constexpr Version kV1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "total_active_file"};
constexpr Version kV2{"memory.max", "memory.current", "inactive_file", "active_file"};

/// The number in the file. nullopt if the file contains "max" or does not exist.
std::optional<std::uint64_t> number_in(const std::string& file) {
  std::ifstream from(file);
  std::uint64_t number = 0;
  if (from >> number) return number;
  return std::nullopt;
}

/// The group's resident file pages, which the kernel reclaims before it kills a process. Half of the active pages
/// count, as in MemAvailable.
std::uint64_t reclaimable(const std::string& group, const Version& version) {
  std::ifstream stat(group + "/memory.stat");
  std::uint64_t sum = 0, value = 0;
  for (std::string name; stat >> name >> value;) {
    if (name == version.inactive) sum += value;
    if (name == version.active) sum += value / 2;
  }
  return sum;
}

/// Checks the group at `root` + `path` and all groups above it, up to `root`. In a container, `path` may be the host's
/// path while the container's group is mounted at `root`; then only `root` exists.
void look_at_groups(const std::string& root, std::string path, const Version& version, FreeMemory& least) {
  if (path.find("/..") != std::string::npos) path.clear();  // outside of this cgroup namespace
  for (;;) {
    while (path.ends_with('/')) path.pop_back();
    const std::string group = root + path;
    const auto limit = number_in(group + "/" + std::string(version.limit));
    const auto used = number_in(group + "/" + std::string(version.used));
    if (limit && used) {
      const std::uint64_t kept = *used - std::min(*used, reclaimable(group, version));
      const std::uint64_t left = *limit - std::min(*limit, kept);
      if (left < least.bytes) least = {left, "the control group (" + group + "/" + std::string(version.limit) + ")"};
    }
    if (path.empty()) return;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

/// Lines of /proc/self/cgroup are "0::/path" (version 2) and "4:memory:/path" (version 1).
void look_at_groups(const ControlGroups& groups, FreeMemory& least) {
  std::ifstream membership(groups.membership);
  for (std::string line; std::getline(membership, line);) {
    std::istringstream parts(line);
    std::string number, controllers, path;
    if (!std::getline(parts, number, ':') || !std::getline(parts, controllers, ':') || !std::getline(parts, path))
      continue;
    if (number == "0" && controllers.empty()) look_at_groups(groups.root, path, kV2, least);
    if (("," + controllers + ",").find(",memory,") != std::string::npos)
      look_at_groups(groups.root + "/memory", path, kV1, least);
  }
}

}  // namespace

FreeMemory free_memory(const std::string& directory, const ControlGroups& groups) {
  FreeMemory least{.bytes = std::numeric_limits<std::uint64_t>::max(), .where = "memory"};
  std::ifstream kernel("/proc/meminfo");
  std::string name, unit;
  for (std::uint64_t kib = 0; kernel >> name >> kib && std::getline(kernel, unit);) {
    if (name == "MemAvailable:") least.bytes = kib << 10;
  }
  look_at_groups(groups, least);
  struct statvfs there{};
  if (::statvfs(directory.c_str(), &there) == 0) {
    const std::uint64_t left = std::uint64_t{there.f_bavail} * there.f_frsize;
    if (there.f_blocks != 0 && left < least.bytes) least = {left, directory};
  }
  return least;
}

}  // namespace wherry
