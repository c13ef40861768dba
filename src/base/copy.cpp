// SPDX-License-Identifier: Apache-2.0
#include "base/copy.hpp"

#include <cstdint>
#include <cstring>

#include "base/clock.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace wherry {

#if defined(__x86_64__)

// SSE2 is part of x86-64, so no dispatch; four 16-byte streams fill one write-combining line. Two lines a turn and a
// prefetch ahead keep the loads of one page in flight.
void copy_streaming(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  constexpr std::size_t kLine = 64;
  constexpr std::size_t kAhead = 1024;
  const std::size_t head = (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine;
  if (bytes < head + kLine) {
    std::memcpy(to, from, bytes);
    return;
  }
  std::memcpy(to, from, head);
  to += head;
  from += head;
  bytes -= head;
  for (; bytes >= kLine; bytes -= kLine, to += kLine, from += kLine) {
    _mm_prefetch(reinterpret_cast<const char*>(from) + kAhead, _MM_HINT_NTA);
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 16));
    const __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 32));
    const __m128i d = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 48));
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), a);
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + 16), b);
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + 32), c);
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + 48), d);
  }
  _mm_sfence();
  std::memcpy(to, from, bytes);
}

#else

void copy_streaming(std::byte* to, const std::byte* from, std::size_t bytes) noexcept { std::memcpy(to, from, bytes); }

#endif

void CopyChooser::copy(std::byte* to, const std::byte* from, std::size_t bytes, std::size_t whole) noexcept {
  SizeClass& c = classes_[static_cast<std::size_t>(std::bit_width(whole)) % classes_.size()];
  const bool trying = c.trials < 2 * kTrials;
  const bool streaming = trying ? c.trials % 2 == 1 : c.best_ps_per_byte[1] < c.best_ps_per_byte[0];
  const std::uint64_t start = trying ? now_ns() : 0;
  if (streaming) {
    copy_streaming(to, from, bytes);
  } else {
    std::memcpy(to, from, bytes);
  }
  if (!trying || bytes == 0) return;
  // The first trial of each kind may meet cold pages: the best counts.
  const std::uint64_t cost = (now_ns() - start) * 1000 / bytes;
  if (cost < c.best_ps_per_byte[streaming ? 1 : 0]) c.best_ps_per_byte[streaming ? 1 : 0] = cost;
  ++c.trials;
}

}  // namespace wherry
