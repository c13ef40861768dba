// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "probe/registry.hpp"

namespace wherry::probe {

/// The paths of all folders. A new folder needs a line in lists.cpp.
[[nodiscard]] Result<Registry> all_paths();

}  // namespace wherry::probe
