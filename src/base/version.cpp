// SPDX-License-Identifier: Apache-2.0
#include "base/version.hpp"

namespace wherry {
const char* const kVersion = WHERRY_VERSION;  // set by CMake, for this file only
}  // namespace wherry
