// SPDX-License-Identifier: Apache-2.0
#include "base/hot_memory.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <new>

namespace wherry {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// Whole huge pages, aligned to their size.
class HugePages final : public std::pmr::memory_resource {
  void* do_allocate(std::size_t bytes, std::size_t) override {
    const std::size_t wanted = (bytes + kHugePage - 1) / kHugePage * kHugePage;
    void* const raw = mmap(nullptr, wanted + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) throw std::bad_alloc();
    auto* const first = static_cast<std::byte*>(raw);
    const std::size_t before = -reinterpret_cast<std::uintptr_t>(raw) % kHugePage;
    if (before != 0) munmap(first, before);
    if (before != kHugePage) munmap(first + before + wanted, kHugePage - before);
    (void)madvise(first + before, wanted, MADV_HUGEPAGE);  // where it is refused, ordinary pages do
    return first + before;
  }
  void do_deallocate(void*, std::size_t, std::size_t) override {}
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

}  // namespace

std::pmr::memory_resource& hot_memory() noexcept {
  // Never destroyed: objects with static storage may live here.
  static auto* const pool = [] {
    static HugePages pages;
    auto* const front = new std::pmr::monotonic_buffer_resource(kHugePage - 4096, &pages);
    return new std::pmr::synchronized_pool_resource(
        {.max_blocks_per_chunk = 64, .largest_required_pool_block = 4 << 20}, front);
  }();
  return *pool;
}

}  // namespace wherry
