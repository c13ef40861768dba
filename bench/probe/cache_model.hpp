// SPDX-License-Identifier: Apache-2.0
// A model of a cache hierarchy: it counts the misses of each level and the traffic to and from memory, but no times.
//
// Each level is set-associative with true LRU, write-back and write-allocate; all have the same line size.
// An access that misses a level is looked up in the next one and then placed in all levels that it missed.
// If a level evicts a dirty line, the line goes to the next level. Levels are neither inclusive nor exclusive.
// There is no prefetcher, so all misses come from demand accesses. One thread. It is checked against
// another model in cache_model_test.cpp, and against Valgrind's cachegrind in
// python/tests/test_bench_cache.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace wherry::bench {

struct CacheShape {
  std::size_t bytes = 0;
  unsigned ways = 0;

  static constexpr std::size_t kLine = 64;
  /// The number of sets may be any number, because a last-level cache may consist of slices.
  [[nodiscard]] constexpr bool valid() const noexcept { return ways != 0 && bytes != 0 && bytes % (kLine * ways) == 0; }
  [[nodiscard]] constexpr std::size_t sets() const noexcept { return bytes / kLine / ways; }
  friend constexpr bool operator==(CacheShape, CacheShape) noexcept = default;
};

/// One level. A line number is an address divided by CacheShape::kLine.
class CacheLevel {
 public:
  /// Precondition: shape.valid().
  explicit CacheLevel(CacheShape shape);

  /// Whether the line is present. A present line becomes the most recently used of its set, and dirty if `write`.
  bool touch(std::uint64_t line, bool write) noexcept;
  struct Evicted {
    std::uint64_t line = 0;
    bool any = false, dirty = false;
  };
  /// Places a line that is not present, and returns the line that it evicts.
  Evicted place(std::uint64_t line, bool dirty) noexcept;
  /// Removes the line, dirty or not.
  void drop(std::uint64_t line) noexcept;
  [[nodiscard]] const CacheShape& shape() const noexcept { return shape_; }

 private:
  struct Way {
    std::uint64_t line = 0;
    std::uint64_t used = 0;  ///< by clock_; 0: empty
    bool dirty = false;
  };
  [[nodiscard]] std::span<Way> set_of(std::uint64_t line) noexcept {
    return std::span(ways_).subspan(line % shape_.sets() * shape_.ways, shape_.ways);
  }
  CacheShape shape_;
  std::vector<Way> ways_;
  std::uint64_t clock_ = 0;
};

/// Counts of lines, not of accesses: an access that crosses the end of a line counts for both lines.
struct CacheCounts {
  struct Level {
    std::uint64_t loads = 0, load_misses = 0, stores = 0, store_misses = 0;
  };
  std::vector<Level> levels;
  std::uint64_t written_back = 0;  ///< from the last level to memory

  [[nodiscard]] std::uint64_t memory_loads() const noexcept { return levels.back().load_misses; }
  [[nodiscard]] std::uint64_t memory_fills() const noexcept { return levels.back().store_misses; }
};

class CacheModel {
 public:
  /// `shapes`: from the first level to the last, at least one, all valid.
  explicit CacheModel(std::span<const CacheShape> shapes);

  void load(std::uint64_t address, std::size_t bytes) noexcept { access(address, bytes, false); }
  void store(std::uint64_t address, std::size_t bytes) noexcept { access(address, bytes, true); }
  /// A device writes. With `into_cache` (direct cache access), its lines are then dirty in the last level; otherwise
  /// they are in memory only. Of the counts, only written_back changes.
  void deliver(std::uint64_t address, std::size_t bytes, bool into_cache) noexcept;
  [[nodiscard]] const CacheCounts& counts() const noexcept { return counts_; }
  /// Sets all counts to 0; the caches keep their lines.
  void count_anew();

 private:
  void access(std::uint64_t address, std::size_t bytes, bool write) noexcept;
  void touch(std::uint64_t line, bool write) noexcept;
  void place(std::size_t level, std::uint64_t line, bool dirty) noexcept;
  std::vector<CacheLevel> levels_;
  CacheCounts counts_;
};

/// A machine's data caches.
struct CacheSystem {
  std::string name;
  std::vector<CacheShape> levels;
  std::string source;  ///< of the figures
};

/// The caches of core `cpu` as the kernel reports them; no levels if it does not. `root`: for tests, before /sys.
CacheSystem this_machine(int cpu, const std::string& root = "");
/// The two systems of paper 001, section 4 (testbed 1): "xeon_6326" and "bluefield_3".
std::span<const CacheSystem> paper_systems();

}  // namespace wherry::bench
