// SPDX-License-Identifier: Apache-2.0
// Where the agent may write files: a client names a directory of the agent's file system, and is not to choose freely.
#pragma once

#include <string>

#include "wherry/status.hpp"

namespace wherry::move {

/// The directory to write to. With a root: an absolute path free of symbolic links, at or below the root (relative ones
/// start there); kPermissionDenied when it leads out, kUnavailable when the root is missing. Without: `directory` as it
/// is.
Result<std::string> resolve_sink(const std::string& root, const std::string& directory);

}  // namespace wherry::move
