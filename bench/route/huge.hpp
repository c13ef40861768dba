// SPDX-License-Identifier: Apache-2.0
// Memory for tables that are hit at random: in huge pages, where the kernel grants them.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>

namespace wherry::bench {

/// Zeroed; freed when the process ends.
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

/// A stream of random numbers that costs a few instructions each (Steele, Lea, Flood 2014).
inline std::uint64_t splitmix64(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

}  // namespace wherry::bench
