// SPDX-License-Identifier: Apache-2.0
// Who runs this process, as the machine knows it.
#pragma once

#include <sys/types.h>

#include <string>

namespace wherry {

/// This process's user by the number that it has outside of its user namespace; getuid(2) where there is no other.
/// For names of the user's own places: in a namespace of one's own everybody may be 0, as root is.
[[nodiscard]] uid_t user_outside();
/// The same by the text of /proc/self/uid_map (user_namespaces(7)): lines "inside outside count".
[[nodiscard]] uid_t user_outside(const std::string& map, uid_t inside);

}  // namespace wherry
