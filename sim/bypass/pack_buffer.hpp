// SPDX-License-Identifier: Apache-2.0
// The transmit buffer: a ring of frames, each of which starts at a new line. Lines may be released in any order. Space
// is allocated in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/bypass/layout.hpp"

namespace wherry::sim {

class PackBuffer {
 public:
  PackBuffer() = default;
  /// `bytes`: a power of two, at least one line.
  explicit PackBuffer(std::uint32_t bytes) : memory_(bytes), used_(bytes / kLineBytes) {}

  /// Returns the frame's offset, or nothing if the next lines are not free.
  [[nodiscard]] std::optional<std::uint32_t> try_put(std::span<const std::byte> frame);
  /// `at` counts modulo the buffer's size. A frame that crosses the end continues in the second image.
  void read(std::uint32_t at, std::span<std::byte> out) const;
  void release(std::uint32_t line) { used_[line % used_.size()] = 0; }
  [[nodiscard]] std::uint32_t bytes() const noexcept { return static_cast<std::uint32_t>(memory_.size()); }
  [[nodiscard]] std::uint32_t used_lines() const noexcept;

 private:
  std::vector<std::byte> memory_;
  std::vector<std::uint8_t> used_;  ///< by line: 1: not released
  std::uint32_t next_ = 0;          ///< line
};

}  // namespace wherry::sim
