// SPDX-License-Identifier: Apache-2.0
// The cost of a batch for the calling thread: user and system CPU time, and disturbances.
//
// getrusage(2) costs 360 ns and counts microseconds (docs/guide/probe.md), so only batches are measured,
// not single transfers. The sum of user and system time is exact. The kernel divides it by samples at
// its timer (100 to 1000 a second), so the two parts are only accurate for sums of many milliseconds.
#pragma once

#include <cstdint>

#include "probe/path.hpp"

namespace wherry::probe {

struct CpuCost {
  std::uint64_t user_ns = 0, system_ns = 0;
  std::uint64_t involuntary_switches = 0;

  CpuCost& operator+=(const CpuCost& more) noexcept {
    user_ns += more.user_ns;
    system_ns += more.system_ns;
    involuntary_switches += more.involuntary_switches;
    return *this;
  }
};
inline CpuCost operator-(const CpuCost& a, const CpuCost& b) noexcept {
  return {a.user_ns - b.user_ns, a.system_ns - b.system_ns, a.involuntary_switches - b.involuntary_switches};
}

/// The cost of the calling thread up to now.
[[nodiscard]] CpuCost thread_cpu_cost() noexcept;
/// The CPU time of the calling process up to now.
[[nodiscard]] Path::CpuTime process_cpu_time() noexcept;
/// CPU time of the whole machine that the hypervisor gave to other
/// guests, ns, in steps of 10 ms. 0 if the kernel does not report it.
[[nodiscard]] std::uint64_t steal_ns() noexcept;
/// Like steal_ns(), from a text in the format of /proc/stat.
[[nodiscard]] std::uint64_t steal_ns_of(const char* proc_stat) noexcept;

}  // namespace wherry::probe
