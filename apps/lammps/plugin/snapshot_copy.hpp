// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <limits>

namespace wherry::lammps {

/// Copies data that another core reads afterwards, by memcpy or by stores that bypass the caches. Those need not read
/// each line before they write it. The faster copy depends on the machine's caches, so both are tried on the first
/// copies, and the better one stays. One thread.
class SnapshotCopy {
 public:
  /// The regions must not overlap. The data is visible to other cores when the call returns.
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

 private:
  static constexpr int kTrials = 4;  ///< of each kind, in turns; the first of a kind may meet cold pages
  int trials_ = 0;
  std::array<double, 2> best_{std::numeric_limits<double>::infinity(),
                              std::numeric_limits<double>::infinity()};  ///< seconds per byte: memcpy, past the caches
};

}  // namespace wherry::lammps
