// SPDX-License-Identifier: Apache-2.0
// Vectors in huge pages, if the system has any. Without them, random accesses to a large table wait longer for address
// translation than for memory.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <vector>

namespace wherry::apps {

template <typename T>
struct HugeAllocator {
  using value_type = T;
  static constexpr std::size_t kPage = std::size_t{2} << 20;

  HugeAllocator() = default;
  template <typename U>
  HugeAllocator(const HugeAllocator<U>&) noexcept {}  // NOLINT(google-explicit-constructor): as allocators are

  static std::align_val_t alignment(std::size_t bytes) noexcept {
    return std::align_val_t(bytes >= kPage ? kPage : alignof(std::max_align_t));
  }
  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    void* const memory = ::operator new(bytes, alignment(bytes));
    // This is only advice: without huge pages the system uses ordinary ones.
    if (bytes >= kPage) (void)::madvise(memory, bytes / kPage * kPage, MADV_HUGEPAGE);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) noexcept { ::operator delete(memory, alignment(count * sizeof(T))); }
  friend bool operator==(const HugeAllocator&, const HugeAllocator&) noexcept { return true; }
};

template <typename T>
using HugeVector = std::vector<T, HugeAllocator<T>>;

}  // namespace wherry::apps
