// SPDX-License-Identifier: Apache-2.0
// Memory for tables with random accesses, in huge pages if the kernel grants them.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>

namespace wherry::bench {

/// Zeroed. Freed when the process ends. Throws std::bad_alloc.
inline std::span<std::uint64_t> huge_table(std::size_t words) {
  constexpr std::size_t kHuge = std::size_t{2} << 20;
  const std::size_t bytes = (words * sizeof(std::uint64_t) + kHuge - 1) / kHuge * kHuge;
  void* raw = mmap(nullptr, bytes + kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) throw std::bad_alloc();
  const auto at = (reinterpret_cast<std::uintptr_t>(raw) + kHuge - 1) / kHuge * kHuge;
  auto* const table = reinterpret_cast<std::uint64_t*>(at);
  madvise(table, bytes, MADV_HUGEPAGE);
  for (std::size_t i = 0; i < words; ++i) table[i] = 0;
  return {table, words};
}

}  // namespace wherry::bench
