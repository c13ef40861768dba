// SPDX-License-Identifier: Apache-2.0
#pragma once
// The user of this process, as the machine numbers it.
#include <sys/types.h>

#include <string>

namespace wherry {

/// Returns the number of this process's user outside of its user namespace. Equal to getuid(2) without a namespace. For
/// paths that contain the user's number: inside a user namespace, any user may have the number 0.
[[nodiscard]] uid_t user_outside();
/// Like user_outside(), from the text of /proc/self/uid_map (user_namespaces(7)): lines "inside outside count".
[[nodiscard]] uid_t user_outside(const std::string& map, uid_t inside);

}  // namespace wherry
