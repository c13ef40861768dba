// SPDX-License-Identifier: Apache-2.0
// Which core measures, and which one has the other side of a path.
#pragma once

#include <string>
#include <vector>

namespace wherry::probe {

struct Cores {
  int here = 0, other = 0;  ///< the same where this process has one core only
  unsigned count = 1;       ///< that this process may use
  std::string relation;     ///< "other core", "SMT sibling" or "same core"
};

/// `allowed`: not empty. The other one is the first that shares no core with the first, if there is one. `root`: for
/// tests, before /sys.
[[nodiscard]] Cores choose_cores(const std::vector<int>& allowed, const std::string& root = "");
/// Of this process, as of the first call: call it before a thread is pinned.
[[nodiscard]] const Cores& cores();

}  // namespace wherry::probe
