// SPDX-License-Identifier: Apache-2.0
// Memory for objects of hot paths, in one huge page if possible. After the application has evicted the caches, a call
// then has one TLB miss instead of one for each object. On a virtual machine, each walks two page tables.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <vector>

namespace wherry {

/// Thread-safe, with one lock: not for paths that allocate often. Any thread may reuse freed memory. Only pieces of
/// more than 4 MiB return to the system. It reserves at least 2 MiB of address space at a time, and touches pages on
/// first use.
std::pmr::memory_resource& hot_memory() noexcept;

template <typename T>
struct HotAllocator {
  using value_type = T;
  HotAllocator() noexcept = default;
  template <typename U>
  HotAllocator(const HotAllocator<U>&) noexcept {}  // NOLINT(google-explicit-constructor)
  // NOLINTBEGIN(bugprone-sizeof-expression): pointers are elements, too
  [[nodiscard]] T* allocate(std::size_t count) {
    return static_cast<T*>(hot_memory().allocate(count * sizeof(T), alignof(T)));
  }
  void deallocate(T* memory, std::size_t count) noexcept {
    hot_memory().deallocate(memory, count * sizeof(T), alignof(T));
  }
  // NOLINTEND(bugprone-sizeof-expression)
  friend bool operator==(HotAllocator, HotAllocator) noexcept { return true; }
};

template <typename T>
using HotVector = std::vector<T, HotAllocator<T>>;

/// A base for classes whose objects are allocated in hot_memory().
struct InHotMemory {
  static void* operator new(std::size_t bytes) { return hot_memory().allocate(bytes, 64); }
  static void operator delete(void* memory, std::size_t bytes) noexcept { hot_memory().deallocate(memory, bytes, 64); }
};

}  // namespace wherry
