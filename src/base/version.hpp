// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace wherry {
inline constexpr const char* kVersion = "0.1.0";
}  // namespace wherry
