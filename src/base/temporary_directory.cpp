// SPDX-License-Identifier: Apache-2.0
#include "base/temporary_directory.hpp"

#include <fmt/core.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace wherry {

Result<TemporaryDirectory> TemporaryDirectory::create(std::string_view what) {
  constexpr std::size_t kRandom = 6;  // letters at the end, which mkdtemp(3) replaces
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  if (error) {
    return Status(
        StatusCode::kInvalidArgument,
        fmt::format("no directory for temporary files: {}: {}; set $TMPDIR to one", parent.string(), error.message()));
  }
  std::string name = parent / fmt::format("wherry-{}-", what);
  name.append(kRandom, 'X');
  if (mkdtemp(name.data()) == nullptr || ::chmod(name.c_str(), 0700) != 0)  // whatever the umask
    return Status(StatusCode::kInternal, fmt::format("cannot make {}: {}", name, std::strerror(errno)));
  TemporaryDirectory directory;
  directory.path_ = name;
  return directory;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  if (!path_.empty() && !mark_.inherited()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace wherry
