// SPDX-License-Identifier: Apache-2.0
#include "probe/timer.hpp"

#include <algorithm>
#include <ctime>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace wherry::probe {
namespace {

std::uint64_t raw_ns() noexcept {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(t.tv_nsec);
}

#if defined(__x86_64__)
/// Whether the counter's rate never changes: Intel SDM vol. 2A, CPUID leaf 80000007H, EDX bit 8; AMD APM vol. 3.
bool invariant_tsc() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007U, &a, &b, &c, &d) != 0 && (d & (1U << 8)) != 0;
}

struct Pair {
  std::uint64_t ticks, ns;
};
/// Reads both clocks at one moment: of many tries, the one with the least interruption.
Pair both() noexcept {
  Pair best{};
  std::uint64_t least = ~std::uint64_t{0};
  for (int i = 0; i < 64; ++i) {
    const std::uint64_t before = __rdtsc();
    const std::uint64_t ns = raw_ns();
    const std::uint64_t after = __rdtsc();
    if (after - before >= least) continue;
    least = after - before;
    best = {before + (after - before) / 2, ns};
  }
  return best;
}
#endif

}  // namespace

MachineClock::MachineClock() {
#if defined(__x86_64__)
  if (invariant_tsc()) {
    const Pair first = both();
    constexpr std::uint64_t kCalibrationNs = 20'000'000;  // 0.3 ppm (research: 11 calibrations)
    while (raw_ns() - first.ns < kCalibrationNs) {
    }
    const Pair last = both();
    ghz_ = static_cast<double>(last.ticks - first.ticks) / static_cast<double>(last.ns - first.ns);
    scale_ = static_cast<std::uint64_t>(4294967296.0 / ghz_);
    origin_ = first.ticks;
    tsc_ = true;
  }
#endif
  // Cost: the lowest of many runs. Step: the smallest difference between two different readings.
  double cost = 1e9, step = 1e9;
  for (int run = 0; run < 20; ++run) {
    constexpr int kReadings = 200;
    const std::uint64_t begin = now_ns();
    std::uint64_t last = begin;
    for (int i = 0; i < kReadings; ++i) {
      const std::uint64_t now = now_ns();
      if (now != last) step = std::min(step, static_cast<double>(now - last));
      last = now;
    }
    cost = std::min(cost, static_cast<double>(last - begin) / kReadings);
  }
  resolution_ns_ = std::max({1.0, cost, step < 1e9 ? step : 1.0});
}

std::uint64_t MachineClock::now_ns() noexcept {
#if defined(__x86_64__)
  if (tsc_) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>(static_cast<Wide>(__rdtsc() - origin_) * scale_ >> 32);
  }
#endif
  return raw_ns();
}

}  // namespace wherry::probe
