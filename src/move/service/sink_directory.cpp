// SPDX-License-Identifier: Apache-2.0
#include "move/service/sink_directory.hpp"

#include <algorithm>
#include <filesystem>

namespace wherry::move {

Result<std::string> resolve_sink(const std::string& root, const std::string& directory) {
  if (root.empty()) return directory;
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path real_root = fs::canonical(root, error);
  if (error) return Status(StatusCode::kUnavailable, "the agent's sink.root " + root + ": " + error.message());
  // Symbolic links are followed as far as the path exists; what does not exist yet cannot lead anywhere.
  const fs::path real = fs::weakly_canonical(real_root / directory, error);
  if (error) return Status(StatusCode::kInvalidArgument, "sink directory " + directory + ": " + error.message());
  const bool below =
      std::mismatch(real_root.begin(), real_root.end(), real.begin(), real.end()).first == real_root.end();
  if (!below) {
    return Status(StatusCode::kPermissionDenied, "sink directory " + directory + " is not below " + real_root.string() +
                                                     ", where this agent writes files (its setting sink.root)");
  }
  return real.string();
}

}  // namespace wherry::move
