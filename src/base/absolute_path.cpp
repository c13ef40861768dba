// SPDX-License-Identifier: Apache-2.0
#include "base/absolute_path.hpp"

#include <fmt/core.h>

#include <system_error>

namespace wherry {

Result<std::filesystem::path> absolute_path(const std::string& path) {
  if (path.empty()) return Status(StatusCode::kInvalidArgument, "the path is empty: name a file or a directory");
  std::error_code error;
  std::filesystem::path whole = std::filesystem::absolute(path, error);
  if (!error) return whole;
  return Status(StatusCode::kInvalidArgument,
                fmt::format("{} is relative, and the current directory is unknown ({}): give the complete path", path,
                            error.message()));
}

}  // namespace wherry
