// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "wherry/status.hpp"

namespace wherry::probe {

/// Whole pages of this process, touched, and locked on request if the limit of locked memory allows it. Move-only.
class HostMemory {
 public:
  HostMemory() noexcept = default;
  /// kResourceExhausted: not enough memory.
  static Result<HostMemory> make(std::size_t bytes, bool lock = true);
  HostMemory(HostMemory&& other) noexcept
      : at_(std::exchange(other.at_, nullptr)), bytes_(std::exchange(other.bytes_, 0)), locked_(other.locked_) {}
  HostMemory& operator=(HostMemory&& other) noexcept {
    std::swap(at_, other.at_);
    std::swap(bytes_, other.bytes_);
    std::swap(locked_, other.locked_);
    return *this;
  }
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  ~HostMemory();

  [[nodiscard]] std::span<std::byte> span() noexcept { return {at_, bytes_}; }
  [[nodiscard]] std::byte* data() noexcept { return at_; }
  [[nodiscard]] bool locked() const noexcept { return locked_; }

 private:
  std::byte* at_ = nullptr;
  std::size_t bytes_ = 0;  ///< as asked for
  bool locked_ = false;
};

}  // namespace wherry::probe
