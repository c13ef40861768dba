// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "base/fork.hpp"
#include "wherry/status.hpp"

namespace wherry {

/// A new directory that only its user may look into, in the system's place for such. Goes with its contents on
/// destruction, but not with a child of fork(). Move-only.
class TemporaryDirectory {
 public:
  TemporaryDirectory() noexcept = default;
  /// Its name starts with "wherry-" and `what`. kInternal says why there is none.
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
