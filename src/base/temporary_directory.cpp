// SPDX-License-Identifier: Apache-2.0
#include "base/temporary_directory.hpp"

#include <fmt/core.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>

namespace wherry {

Result<TemporaryDirectory> TemporaryDirectory::create(std::string_view what) {
  constexpr std::size_t kRandom = 6;  // letters at the end, which mkdtemp(3) replaces
  std::string name = std::filesystem::temp_directory_path() / fmt::format("wherry-{}-", what);
  name.append(kRandom, 'X');
  if (mkdtemp(name.data()) == nullptr)
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
