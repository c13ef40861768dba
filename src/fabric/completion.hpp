// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace wherry::fabric {

/// Counts the pending operations of a group. Must outlive them, and must not move while pending() > 0.
class Completion {
 public:
  [[nodiscard]] std::uint32_t pending() const noexcept { return pending_; }
  /// UCX's text for the first failure; null if no operation failed.
  [[nodiscard]] const char* error() const noexcept { return error_; }
  void reset() noexcept { pending_ = 0, error_ = nullptr; }

  void op_started() noexcept { ++pending_; }
  void op_done(const char* error) noexcept {
    --pending_;
    if (error != nullptr && error_ == nullptr) error_ = error;
  }

 private:
  std::uint32_t pending_ = 0;
  const char* error_ = nullptr;
};

}  // namespace wherry::fabric
