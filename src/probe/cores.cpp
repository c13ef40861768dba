// SPDX-License-Identifier: Apache-2.0
#include "probe/cores.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>

#include "base/cpu.hpp"
#include "probe/environment.hpp"

namespace wherry::probe {

Cores choose_cores(const std::vector<int>& allowed, const std::string& root) {
  Cores found{.here = allowed.front(), .other = allowed.front(), .count = static_cast<unsigned>(allowed.size())};
  std::string text;
  std::ifstream file(fmt::format("{}/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", root, found.here));
  std::getline(file, text);
  const auto siblings = parse_list(text);
  found.relation = "same core";
  for (const int core : allowed) {
    if (core == found.here) continue;
    const bool sibling = std::ranges::find(siblings, static_cast<unsigned>(core)) != siblings.end();
    if (found.relation == "same core" || !sibling) found.other = core;
    found.relation = sibling ? "SMT sibling" : "other core";
    if (!sibling) break;
  }
  return found;
}

const Cores& cores() {
  static const Cores found = [] {
    const auto allowed = allowed_cores();
    return choose_cores(allowed.empty() ? std::vector<int>{0} : allowed);
  }();
  return found;
}

}  // namespace wherry::probe
