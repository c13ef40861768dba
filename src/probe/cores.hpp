// SPDX-License-Identifier: Apache-2.0
// Chooses the core that measures, and the core for the other side of a path.
#pragma once

#include <string>
#include <vector>

namespace wherry::probe {

struct Cores {
  int here = 0, other = 0;  ///< the same where this process has one core only
  unsigned count = 1;       ///< that this process may use
  std::string relation;     ///< "other core", "SMT sibling" or "same core"
};

/// `allowed`: not empty. The other core is the first one on a different
/// physical core, if there is one. `root`: for tests, a prefix of /sys.
[[nodiscard]] Cores choose_cores(const std::vector<int>& allowed, const std::string& root = "");
/// The cores that this process may use at the first call. Make that call before a thread is pinned.
[[nodiscard]] const Cores& cores();

}  // namespace wherry::probe
