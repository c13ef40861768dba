// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "wherry/status.hpp"

namespace wherry {

/// The path from the root. kInvalidArgument: it is empty, or it is relative and the current directory is gone.
/// (std::filesystem::absolute throws.)
Result<std::filesystem::path> absolute_path(const std::string& path);

}  // namespace wherry
