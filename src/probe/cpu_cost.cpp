// SPDX-License-Identifier: Apache-2.0
#include "probe/cpu_cost.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdio>

#include "base/fd.hpp"

namespace wherry::probe {
namespace {

std::uint64_t ns_of(const timeval& time) noexcept {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(time.tv_usec) * 1000U;
}

}  // namespace

std::uint64_t steal_ns_of(const char* proc_stat) noexcept {
  std::array<unsigned long long, 8> ticks{};
  // proc(5): user nice system idle iowait irq softirq steal, in USER_HZ
  if (std::sscanf(proc_stat, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &ticks[0], &ticks[1], &ticks[2], &ticks[3],
                  &ticks[4], &ticks[5], &ticks[6], &ticks[7]) != 8)
    return 0;
  const long hertz = sysconf(_SC_CLK_TCK);
  return ticks[7] * (1'000'000'000U / static_cast<std::uint64_t>(hertz > 0 ? hertz : 100));
}

std::uint64_t steal_ns() noexcept {
  std::array<char, 256> text{};
  const Fd stat(::open("/proc/stat", O_RDONLY | O_CLOEXEC));
  return stat && ::read(stat.get(), text.data(), text.size() - 1) > 0 ? steal_ns_of(text.data()) : 0;
}

CpuCost thread_cpu_cost() noexcept {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return {ns_of(usage.ru_utime), ns_of(usage.ru_stime), static_cast<std::uint64_t>(usage.ru_nivcsw)};
}

Path::CpuTime process_cpu_time() noexcept {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {ns_of(usage.ru_utime), ns_of(usage.ru_stime)};
}

}  // namespace wherry::probe
