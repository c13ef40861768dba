// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "probe/path.hpp"

namespace wherry::probe {

/// The rate of a function's link in one direction, from current_link_speed and current_link_width: the bytes after the
/// line code, and without SKP ordered sets for 8 GT/s and more. The heads of the packets are not subtracted, because
/// they depend on sizes that are unknown here. So a figure always stays below the bound. 0: the files do not contain
/// it.
Bound link_bound(const std::string& folder);

}  // namespace wherry::probe
