// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace wherry {
/// "0.1.0": the version in CMakeLists.txt.
extern const char* const kVersion;
}  // namespace wherry
