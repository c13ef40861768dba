// SPDX-License-Identifier: Apache-2.0
// Memory of the agent's budget for Arrow's compute functions. Results of queries and operators lie in the arena, like
// frames, so the agent never exceeds its budget.
#pragma once

#include <arrow/memory_pool.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "fabric/arena.hpp"

namespace wherry::move {

/// Thread-safe. Each allocation is a separate extent of whole pages, so use the pool for large arrays. A pool lives
/// until its last allocation is freed, whoever owns that, because Arrow's buffers hold the pool's address.
class ArenaPool final : public arrow::MemoryPool, public std::enable_shared_from_this<ArenaPool> {
 public:
  /// Functions for the pool's allocations. They are called on the allocating thread, without the pool's lock.
  struct Rules {
    /// Counts bytes of the arena. False: the number would exceed a limit.
    std::function<bool(std::uint64_t bytes)> take = [](std::uint64_t) { return true; };
    std::function<void(std::uint64_t bytes)> give_back = [](std::uint64_t) {};
    /// The arena is full. True: memory was freed, try again.
    std::function<bool()> make_room = [] { return false; };
  };
  static std::shared_ptr<ArenaPool> make(std::shared_ptr<Arena> arena, Rules rules);

  using arrow::MemoryPool::Allocate;
  using arrow::MemoryPool::Free;
  using arrow::MemoryPool::Reallocate;
  /// OutOfMemory: the arena is full or the rules refuse; the caller may try again later. CapacityError: `size` exceeds
  /// the whole arena.
  arrow::Status Allocate(std::int64_t size, std::int64_t alignment, std::uint8_t** out) override;
  arrow::Status Reallocate(std::int64_t old_size, std::int64_t new_size, std::int64_t alignment,
                           std::uint8_t** ptr) override;
  void Free(std::uint8_t* buffer, std::int64_t size, std::int64_t alignment) override;
  /// Allocated bytes of the arena, which are more than the requested bytes.
  [[nodiscard]] std::int64_t bytes_allocated() const override { return stats_.bytes_allocated(); }
  [[nodiscard]] std::int64_t max_memory() const override { return stats_.max_memory(); }
  [[nodiscard]] std::int64_t total_bytes_allocated() const override { return stats_.total_bytes_allocated(); }
  [[nodiscard]] std::int64_t num_allocations() const override { return stats_.num_allocations(); }
  [[nodiscard]] std::string backend_name() const override { return "wherry-arena"; }

 private:
  ArenaPool(std::shared_ptr<Arena> arena, Rules rules) : arena_(std::move(arena)), rules_(std::move(rules)) {}

  const std::shared_ptr<Arena> arena_;
  const Rules rules_;
  arrow::internal::MemoryPoolStats stats_;
  std::mutex mutex_;
  struct Live {
    Extent extent;
    std::uint64_t taken = 0;  ///< counted by the rules
  };
  std::map<const std::uint8_t*, Live> live_;
  std::shared_ptr<ArenaPool> self_;  ///< set while live_ is not empty
};

}  // namespace wherry::move
