// SPDX-License-Identifier: Apache-2.0
// All paths of a program. Each folder of paths has a function that lists its paths, one line for each class.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "probe/path.hpp"

namespace wherry::probe {

using Paths = std::vector<std::unique_ptr<Path>>;

/// A folder's list, such as host_paths(). It makes every possible path, including
/// absent ones, without using a device, memory or a process: only open() uses them.
using PathList = Paths (*)();

/// The paths of several lists.
class Registry {
 public:
  /// kAlreadyExists, with the id: two paths have it. kInvalidArgument: the path has no group or ends, or its
  /// id is not in words of lower-case letters, digits, '-' and '_', joined by '.' (such as "cpu.memcpy").
  [[nodiscard]] Status add(PathList list);

  [[nodiscard]] const Paths& paths() const noexcept { return paths_; }
  /// Null if there is none.
  [[nodiscard]] Path* find(std::string_view id) const noexcept;
  /// The paths whose id is `pattern` or begins with "pattern.", or whose group is `pattern`. Empty pattern: all.
  [[nodiscard]] std::vector<Path*> matching(std::string_view pattern) const;

 private:
  Paths paths_;
};

}  // namespace wherry::probe
