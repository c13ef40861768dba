// SPDX-License-Identifier: Apache-2.0
#include "base/text_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/fd.hpp"

namespace wherry {

Result<std::string> read_text_file(const std::string& path, const std::string& what, std::size_t limit) {
  const auto cannot_read = [&](int error) {
    const StatusCode code = error == ENOENT || error == ENOTDIR ? StatusCode::kNotFound
                            : error == EACCES                   ? StatusCode::kPermissionDenied
                                                                : StatusCode::kInvalidArgument;
    return Status(code, fmt::format("cannot read {} '{}': {}", what, path, std::strerror(error)));
  };
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return cannot_read(errno);
  std::string text;
  std::array<char, 4096> chunk{};
  for (;;) {
    const ssize_t n = ::read(fd.get(), chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return cannot_read(errno);  // of a directory, too
    if (n == 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(n));
    if (text.size() > limit) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("cannot read {} '{}': it has more than {} bytes", what, path, limit));
    }
  }
}

}  // namespace wherry
