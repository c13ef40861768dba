// SPDX-License-Identifier: Apache-2.0
// A model of a cache hierarchy: which accesses miss which level, and the traffic to and from memory. No times.
//
// Each level is set-associative with true LRU, write-back and write-allocate; all have the same lines. An access that
// misses a level is looked up in the next one and then placed in all levels that it missed. A dirty line that a level
// evicts goes to the next level. Levels neither include nor exclude each other. There is no prefetcher: the misses are
// those of demand accesses.
// One thread. It is checked against another model in cache_model_test.cpp, and against Valgrind's cachegrind in
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
  /// The number of sets need not be a power of two, because a last-level cache may consist of slices.
  [[nodiscard]] constexpr bool valid() const noexcept { return ways != 0 && bytes != 0 && bytes % (kLine * ways) == 0; }
  [[nodiscard]] constexpr std::size_t sets() const noexcept { return bytes / kLine / ways; }
  friend constexpr bool operator==(CacheShape, CacheShape) noexcept = default;
};

/// One level. Lines are addresses divided by CacheShape::kLine.
class CacheLevel {
 public:
  /// Precondition: shape.valid().
  explicit CacheLevel(CacheShape shape);

  /// Whether the line is there; it is then the most recently used one of its set, and dirty if `write`.
  bool touch(std::uint64_t line, bool write) noexcept;
  struct Evicted {
    std::uint64_t line = 0;
    bool any = false, dirty = false;
  };
  /// Places a line that is not there, and says which one had to go.
  Evicted place(std::uint64_t line, bool dirty) noexcept;
  /// Takes the line out, dirty or not.
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

/// Lines, not accesses: one that crosses a line's end counts for both.
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
  /// From the first level to the last one; at least one, all valid.
  explicit CacheModel(std::span<const CacheShape> shapes);

  void load(std::uint64_t address, std::size_t bytes) noexcept { access(address, bytes, false); }
  void store(std::uint64_t address, std::size_t bytes) noexcept { access(address, bytes, true); }
  /// A device writes: with `into_cache` (direct cache access) its lines are in the last level afterwards, dirty;
  /// without they are in memory only. Only written_back changes among the counts.
  void deliver(std::uint64_t address, std::size_t bytes, bool into_cache) noexcept;
  [[nodiscard]] const CacheCounts& counts() const noexcept { return counts_; }
  /// Counts from 0; the caches keep what they have.
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

/// The system of core `cpu`, by the kernel. No levels: the kernel does not report it. `root`: for tests, before /sys.
CacheSystem this_machine(int cpu, const std::string& root = "");
/// The two of paper 001, section 4 (testbed 1): "xeon_6326" and "bluefield_3".
std::span<const CacheSystem> paper_systems();

}  // namespace wherry::bench
