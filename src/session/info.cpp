// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "wherry/session.hpp"

namespace wherry {

std::string_view to_string(Verdict verdict) noexcept {
  return verdict == Verdict::kOneSided ? "one_sided" : "emulated";
}

std::string SessionInfo::to_string() const {
  return fmt::format("agent {} (pid {}), {}, heap {}, allocated {}{}", agent_version, agent_pid, transports,
                     wherry::to_string(heap), wherry::to_string(allocated), mapped ? ", mapped" : "");
}

}  // namespace wherry
