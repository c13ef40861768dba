// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "probe/memory_lines.hpp"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace wherry::bench {
namespace {

constexpr std::size_t kLine = 64;

}  // namespace

bool flush_lines([[maybe_unused]] const std::byte* at, [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(__x86_64__)
  for (std::size_t i = 0; i < bytes; i += kLine) _mm_clflush(at + i);
  _mm_mfence();
  return true;
#elif defined(__aarch64__)
  for (std::size_t i = 0; i < bytes; i += kLine) asm volatile("dc civac, %0" ::"r"(at + i) : "memory");
  asm volatile("dsb sy" ::: "memory");  // Linux lets programs do both (SCTLR_EL1.UCI)
  return true;
#else
  return false;
#endif
}

std::uint64_t sum_words(const std::byte* at, std::size_t bytes) noexcept {
  // Adds two words at a time, so that the loop is not slower than the caches. Every supported processor can do that.
  using Words [[gnu::vector_size(16)]] = std::uint64_t;
  Words a{}, b{}, c{}, d{};
  for (std::size_t i = 0; i < bytes; i += kLine) {
    Words line[4];
    std::memcpy(line, at + i, sizeof line);
    a += line[0];
    b += line[1];
    c += line[2];
    d += line[3];
  }
  a += b + c + d;
  return a[0] + a[1];
}

}  // namespace wherry::bench
