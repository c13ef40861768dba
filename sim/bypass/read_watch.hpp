// SPDX-License-Identifier: Apache-2.0
// Records which bytes of a buffer the NIC has read. Transmit completion relies on this alone, since with RS = 0 a NIC
// does not report. PCIe lets reads pass reads, so their order does not matter.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "sim/bypass/layout.hpp"

namespace wherry::sim {

class ReadWatch {
 public:
  explicit ReadWatch(std::uint32_t bytes) : bytes_(bytes), left_(bytes), read_((bytes + kLineBytes - 1) / kLineBytes) {}

  /// Marks `count` bytes from `at` on as read. Bytes past the buffer's end do not count, and no byte counts twice.
  void mark(std::uint32_t at, std::uint32_t count) noexcept {
    const std::uint32_t end = std::min(bytes_, at + count);
    while (at < end) {
      const std::uint32_t line = at / kLineBytes, first = at % kLineBytes;
      const std::uint32_t here = std::min(end - at, kLineBytes - first);
      const std::uint64_t mask = ~std::uint64_t{0} >> (kLineBytes - here) << first;
      left_ -= static_cast<std::uint32_t>(std::popcount(mask & ~read_[line]));
      read_[line] |= mask;
      at += here;
    }
  }
  [[nodiscard]] bool done() const noexcept { return left_ == 0; }
  /// Whether every byte of this line of the buffer was read.
  [[nodiscard]] bool line_done(std::uint32_t line) const noexcept {
    const std::uint32_t used = std::min(bytes_ - line * kLineBytes, kLineBytes);
    return static_cast<std::uint32_t>(std::popcount(read_[line])) == used;
  }

 private:
  std::uint32_t bytes_;
  std::uint32_t left_;
  std::vector<std::uint64_t> read_;  ///< by line, a bit a byte
};

}  // namespace wherry::sim
