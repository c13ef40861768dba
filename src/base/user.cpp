// SPDX-License-Identifier: Apache-2.0
#include "base/user.hpp"

#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <sstream>

namespace wherry {

uid_t user_outside() {
  std::ifstream file("/proc/self/uid_map");
  return user_outside(std::string(std::istreambuf_iterator<char>(file), {}), ::getuid());
}

uid_t user_outside(const std::string& map, uid_t inside) {
  std::istringstream lines(map);
  for (std::uint64_t first = 0, outside = 0, count = 0; lines >> first >> outside >> count;)
    if (inside >= first && inside - first < count) return static_cast<uid_t>(outside + (inside - first));
  return inside;
}

}  // namespace wherry
