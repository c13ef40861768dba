// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "base/fork.hpp"
#include "wherry/status.hpp"

namespace wherry {

/// Creates a directory, in the system's directory for temporary files, that only this user may read. The destructor
/// removes it with its contents, except in a child of fork(). Move-only.
class TemporaryDirectory {
 public:
  TemporaryDirectory() noexcept = default;
  /// Its name starts with "wherry-" and `what`. kInternal: it could not be made; the message has the reason.
  static Result<TemporaryDirectory> create(std::string_view what);
  TemporaryDirectory(TemporaryDirectory&& other) noexcept : path_(std::exchange(other.path_, {})), mark_(other.mark_) {}
  TemporaryDirectory& operator=(TemporaryDirectory&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(mark_, other.mark_);
    return *this;
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory();

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] std::string file(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
  ProcessMark mark_;
};

}  // namespace wherry
