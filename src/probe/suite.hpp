// SPDX-License-Identifier: Apache-2.0
// Which shapes a run measures of a path: sizes and depths, and what else the path accepts.
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

/// A cell takes no more memory than this, both ends.
inline constexpr std::size_t kMostFootprint = std::size_t{64} << 20;

/// What is under way at once, if it is more than one transfer.
inline constexpr std::size_t kMostUnderWay = std::size_t{4} << 20;

/// The cells of a path that can run. By size, then depth, flow, notice, cache, alignment; an open loop at half the rate
/// where a path is deep enough.
[[nodiscard]] std::vector<Cell> cells_of(Path& path, const SuiteOptions& options);

/// Those of all paths, taking turns, so that neighbours in time are of different paths.
[[nodiscard]] std::vector<Cell> interleaved(const std::vector<Path*>& paths, const SuiteOptions& options);

}  // namespace wherry::probe
