// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "probe/path.hpp"

namespace wherry::probe {

/// What the link of a function carries in one direction, by current_link_speed and current_link_width: the bytes behind
/// the line code, and without SKP ordered sets for 8 GT/s and more. The heads of the packets are not subtracted,
/// because they depend on sizes that this does not know: a figure stays below the bound in any case. 0: the files do
/// not say.
Bound link_bound(const std::string& folder);

}  // namespace wherry::probe
