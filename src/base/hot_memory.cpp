// SPDX-License-Identifier: Apache-2.0
#include "base/hot_memory.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <new>

namespace wherry {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// Allocates small pieces in sequence from huge pages that are never returned. Large pieces get their own huge pages,
/// which are returned. Not thread-safe.
class HugePages final : public std::pmr::memory_resource {
  static constexpr std::size_t kLarge = kHugePage / 2;

  static std::size_t whole_pages(std::size_t bytes) { return (bytes + kHugePage - 1) / kHugePage * kHugePage; }

  /// Aligned to the size of a huge page.
  static std::byte* map(std::size_t bytes) {
    void* const raw = mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) throw std::bad_alloc();
    auto* const first = static_cast<std::byte*>(raw);
    const std::size_t before = -reinterpret_cast<std::uintptr_t>(raw) % kHugePage;
    if (before != 0) munmap(first, before);
    if (before != kHugePage) munmap(first + before + bytes, kHugePage - before);
    (void)madvise(first + before, bytes, MADV_HUGEPAGE);  // where it is refused, ordinary pages do
    return first + before;
  }

  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (bytes > kLarge) return map(whole_pages(bytes));
    void* at = next_;
    if (std::align(alignment, bytes, at, left_) == nullptr) {
      at = map(kHugePage);
      left_ = kHugePage;
    }
    next_ = static_cast<std::byte*>(at) + bytes;
    left_ -= bytes;
    return at;
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t) override {
    if (bytes > kLarge) munmap(memory, whole_pages(bytes));
  }
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
};

/// One set of pools for all threads. std::pmr::synchronized_pool_resource has one set for each thread. A new thread
/// takes new chunks and returns them at its end, but HugePages never reuses them. A server that runs each call in a new
/// thread would grow with each call.
class SharedPools final : public std::pmr::memory_resource {
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    const std::lock_guard lock(mutex_);
    return pools_.allocate(bytes, alignment);
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    const std::lock_guard lock(mutex_);
    pools_.deallocate(memory, bytes, alignment);
  }
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  std::mutex mutex_;
  HugePages pages_;
  std::pmr::unsynchronized_pool_resource pools_{
      {.max_blocks_per_chunk = 64, .largest_required_pool_block = std::size_t{4} << 20}, &pages_};
};

}  // namespace

std::pmr::memory_resource& hot_memory() noexcept {
  // Never destroyed: objects with static storage may live here.
  static auto* const pools = new SharedPools;  // NOLINT(bugprone-unhandled-exception-at-new): once, of few bytes
  return *pools;
}

}  // namespace wherry
