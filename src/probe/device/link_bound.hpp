// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "probe/path.hpp"

namespace wherry::probe {

/// The rate of a function's link in one direction, from current_link_speed and
/// current_link_width: bytes after the line code. It excludes SKP ordered sets from 8
/// GT/s on. It includes packet headers, whose share depends on unknown sizes, so a
/// measured rate always stays below this bound. 0: the files do not contain the values.
Bound link_bound(const std::string& folder);

}  // namespace wherry::probe
