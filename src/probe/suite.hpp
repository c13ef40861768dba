// SPDX-License-Identifier: Apache-2.0
// The shapes of a path that a run measures: sizes, depths, and the other properties that the path accepts.
#pragma once

#include <cstddef>
#include <vector>

#include "probe/row.hpp"

namespace wherry::probe {

struct SuiteOptions {
  bool quick = false;
  std::vector<std::size_t> sizes;  ///< empty: those of the suite
  std::vector<unsigned> depths;    ///< empty: those of the suite
  unsigned series = 1;             ///< so often is each cell in the run: 2 compares a run with itself
};

/// The most memory that a cell may use, for both ends together.
inline constexpr std::size_t kMostFootprint = std::size_t{64} << 20;

/// The most bytes in flight, if there is more than one transfer.
inline constexpr std::size_t kMostUnderWay = std::size_t{4} << 20;

/// The cells that a path can run, in the order of size, depth, flow, notice,
/// cache, alignment. Deep paths also have an open loop at half the rate.
[[nodiscard]] std::vector<Cell> cells_of(Path& path, const SuiteOptions& options);

/// The cells of all paths, interleaved, so that successive cells belong to different paths.
[[nodiscard]] std::vector<Cell> interleaved(const std::vector<Path*>& paths, const SuiteOptions& options);

}  // namespace wherry::probe
