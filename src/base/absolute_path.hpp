// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "wherry/status.hpp"

namespace wherry {

/// Returns the path from the root. kInvalidArgument: `path` is empty, or it is relative and the current directory was
/// removed. (std::filesystem::absolute would throw.)
Result<std::filesystem::path> absolute_path(const std::string& path);

}  // namespace wherry
