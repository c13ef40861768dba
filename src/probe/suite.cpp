// SPDX-License-Identifier: Apache-2.0
#include "probe/suite.hpp"

#include <algorithm>
#include <utility>

namespace wherry::probe {
namespace {

constexpr std::size_t kKiB = 1024, kMiB = kKiB * kKiB;

std::vector<std::size_t> sizes_of(const SuiteOptions& options) {
  if (!options.sizes.empty()) return options.sizes;
  if (options.quick) return {64, 4 * kKiB, 64 * kKiB, kMiB};
  return {64, 512, 4 * kKiB, 32 * kKiB, 256 * kKiB, kMiB, 4 * kMiB, 16 * kMiB};
}

std::vector<unsigned> depths_of(const SuiteOptions& options) {
  if (!options.depths.empty()) return options.depths;
  return options.quick ? std::vector<unsigned>{1, 8} : std::vector<unsigned>{1, 4, 16};
}

/// Collects the shapes of a size that the path accepts, with their variants.
class Collector {
 public:
  Collector(Path& path, const SuiteOptions& options) : path_(path), options_(options) {}

  /// Adds each combination of direction, pattern and cache state that the path accepts with the other properties plain.
  void add_size(std::size_t bytes) {
    for (const Flow flow : {Flow::kH2C, Flow::kC2H, Flow::kBoth})
      for (const Pattern pattern : {Pattern::kSequential, Pattern::kStrided, Pattern::kRandom})
        for (const CacheState cache : {CacheState::kWarm, CacheState::kFlushed, CacheState::kRemote})
          add_depths({.bytes = bytes, .pattern = pattern, .flow = flow, .cache = cache});
  }
  [[nodiscard]] std::vector<Cell> take() { return std::move(cells_); }

 private:
  void add_depths(Shape shape) {
    for (const unsigned depth : depths_of(options_)) {
      shape.depth = depth;
      if (options_.depths.empty() && depth > 1 && path_.accepts(shape) && path_.work(shape).slots > 1 &&
          shape.bytes * depth > (options_.quick ? kMostUnderWay / 4 : kMostUnderWay))
        continue;
      const bool polled = add(shape, Notice::kPolled);
      const bool middle = shape.bytes == 4 * kKiB || shape.bytes == 64 * kKiB || shape.bytes == 256 * kKiB;
      // The kind of notice matters most at depth 1. A path that cannot poll has only rows with other notices.
      for (const Notice notice : {Notice::kInterrupt, Notice::kBlocking})
        if (!polled || (middle && depth == 1)) add(shape, notice);
    }
    if (!options_.sizes.empty() || !options_.depths.empty() || shape.cache == CacheState::kFlushed) return;
    shape.depth = 1;
    if (shape.bytes == 4 * kKiB && !options_.quick) add_variants(shape);
    if (shape.bytes == 4 * kKiB) add_open_loop(shape);
  }
  void add_variants(const Shape& plain) {
    for (const unsigned align : {1U, 16U, 63U}) {
      Shape shape = plain;
      shape.align = align;
      add(shape, Notice::kPolled);
    }
    for (const unsigned channels : {2U, 4U}) {
      Shape shape = plain;
      shape.channels = channels;
      add(shape, Notice::kPolled);
    }
  }
  void add_open_loop(Shape shape) {
    shape.depth = 8;
    shape.notice = Notice::kPolled;
    if (!path_.accepts(shape) || path_.work(shape).per_restore != 0 || path_.work(shape).slots == 1 ||
        path_.info().provenance != Provenance::kMeasured)
      return;
    push({.path = &path_, .shape = shape, .offered_share = 0.5});
  }
  bool add(Shape shape, Notice notice) {
    shape.notice = notice;
    if (!path_.accepts(shape) || path_.work(shape).footprint > kMostFootprint) return false;
    push({.path = &path_, .shape = shape});
    return true;
  }
  void push(Cell cell) {
    for (cell.series = 0; cell.series < options_.series; ++cell.series) cells_.push_back(cell);
  }

  Path& path_;
  const SuiteOptions& options_;
  std::vector<Cell> cells_;
};

}  // namespace

std::vector<Cell> cells_of(Path& path, const SuiteOptions& options) {
  Collector collector(path, options);
  for (const std::size_t bytes : sizes_of(options)) collector.add_size(bytes);
  auto cells = collector.take();
  const bool small = std::ranges::all_of(cells, [](const Cell& cell) { return cell.shape.bytes < 4 * kKiB; });
  if (!small || !options.sizes.empty()) return cells;
  // For registers and atomics, only single words matter.
  Collector words(path, options);
  for (const std::size_t bytes : {4, 8, 16, 32}) words.add_size(bytes);
  auto all = words.take();
  all.insert(all.end(), cells.begin(), cells.end());
  return all;
}

std::vector<Cell> interleaved(const std::vector<Path*>& paths, const SuiteOptions& options) {
  std::vector<std::vector<Cell>> each;
  std::size_t most = 0;
  for (Path* const path : paths) {
    if (!path->info().absent.empty()) continue;
    each.push_back(cells_of(*path, options));
    most = std::max(most, each.back().size());
  }
  std::vector<Cell> cells;
  for (std::size_t i = 0; i < most; ++i)
    for (const auto& of : each)
      if (i < of.size()) cells.push_back(of[i]);
  return cells;
}

}  // namespace wherry::probe
