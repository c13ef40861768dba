// SPDX-License-Identifier: Apache-2.0
#include "base/copy.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/clock.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace wherry {

#if defined(__x86_64__)

namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kPages = 4;

/// Writes one write-combining line. x86-64 includes SSE2, so no dispatch is needed; wider stores are not faster.
inline void stream_line(std::byte* to, const std::byte* from) noexcept {
  const auto* source = reinterpret_cast<const __m128i*>(from);
  auto* target = reinterpret_cast<__m128i*>(to);
  const __m128i a = _mm_loadu_si128(source);
  const __m128i b = _mm_loadu_si128(source + 1);
  const __m128i c = _mm_loadu_si128(source + 2);
  const __m128i d = _mm_loadu_si128(source + 3);
  _mm_stream_si128(target, a);
  _mm_stream_si128(target + 1, b);
  _mm_stream_si128(target + 2, c);
  _mm_stream_si128(target + 3, d);
}

}  // namespace

// Copies four pages at a time, one line of each in turn. Hardware prefetch streams stop at page ends, so this keeps
// four of them running in parallel. Measured against one stream: 1.6x at 16 MiB, 1.15x at 64 and 256 MiB.
void copy_streaming(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  const std::size_t head = std::min(bytes, (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine);
  std::memcpy(to, from, head);
  to += head;
  from += head;
  bytes -= head;
  for (; bytes >= kPages * kPage; bytes -= kPages * kPage, to += kPages * kPage, from += kPages * kPage) {
    for (std::size_t line = 0; line < kPage; line += kLine) {
      for (std::size_t page = 0; page < kPages * kPage; page += kPage)
        stream_line(to + page + line, from + page + line);
    }
  }
  for (; bytes >= kLine; bytes -= kLine, to += kLine, from += kLine) stream_line(to, from);
  _mm_sfence();
  std::memcpy(to, from, bytes);
}

namespace {

bool has_fast_short_rep_mov() noexcept {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;  // they do not see what an instruction of ours copies
#endif
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kFsrm = 1U << 4;  // AMD64 manual volume 3, CPUID Fn0000_0007_EDX_x0
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kFsrm) != 0;
}

const bool g_fast_short_rep_mov = has_fast_short_rep_mov();

}  // namespace

void copy_to_other_core(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  if (!g_fast_short_rep_mov) {
    std::memcpy(to, from, bytes);
    return;
  }
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes)::"memory");
}

#else

void copy_to_other_core(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  std::memcpy(to, from, bytes);
}

void copy_streaming(std::byte* to, const std::byte* from, std::size_t bytes) noexcept { std::memcpy(to, from, bytes); }

#endif

bool CopyChooser::streams(std::size_t whole) const noexcept {
  const SizeClass& c = of(whole);
  return c.trying() ? c.trials % 2 == 1 : c.best_ps_per_byte[1] < c.best_ps_per_byte[0];
}

void CopyChooser::note(std::size_t bytes, std::size_t whole, std::uint64_t ns) noexcept {
  SizeClass& c = of(whole);
  if (!c.trying()) return;
  c.bytes += bytes;
  c.ns += ns;
  if (c.bytes == 0 || c.bytes < whole) return;
  // Keep the best trial, because the first trials use cold pages.
  std::uint64_t& best = c.best_ps_per_byte[c.trials % 2];
  best = std::min(best, c.ns * 1000 / c.bytes);
  c.bytes = c.ns = 0;
  ++c.trials;
}

void CopyChooser::copy(std::byte* to, const std::byte* from, std::size_t bytes, std::size_t whole) noexcept {
  const bool trying = of(whole).trying();
  const std::uint64_t start = trying ? now_ns() : 0;
  if (streams(whole)) {
    copy_streaming(to, from, bytes);
  } else {
    std::memcpy(to, from, bytes);
  }
  if (trying) note(bytes, whole, now_ns() - start);
}

}  // namespace wherry
