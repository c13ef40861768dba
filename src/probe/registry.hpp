// SPDX-License-Identifier: Apache-2.0
// All paths of a program: each folder of paths has a function that lists its own, one line a class.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "probe/path.hpp"

namespace wherry::probe {

using Paths = std::vector<std::unique_ptr<Path>>;

/// A folder's list, such as host_paths(). It makes every possible path, including absent ones. It takes no device,
/// memory or process, because open() does.
using PathList = Paths (*)();

/// The paths of some lists.
class Registry {
 public:
  /// kAlreadyExists, with the id: two paths have it. kInvalidArgument: an id that is not lower-case words of letters,
  /// digits, '-' and '_', joined by '.' (as "cpu.memcpy"), or a path without group or ends.
  [[nodiscard]] Status add(PathList list);

  [[nodiscard]] const Paths& paths() const noexcept { return paths_; }
  /// Null: there is none.
  [[nodiscard]] Path* find(std::string_view id) const noexcept;
  /// Paths whose id is `pattern` or begins with "pattern.", or whose group is `pattern`. Empty pattern: all.
  [[nodiscard]] std::vector<Path*> matching(std::string_view pattern) const;

 private:
  Paths paths_;
};

}  // namespace wherry::probe
