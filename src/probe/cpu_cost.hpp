// SPDX-License-Identifier: Apache-2.0
// What a batch costs the calling thread: CPU time, user and system, and what disturbed it.
//
// getrusage(2) costs 360 ns and counts microseconds (docs/probe.md), so that a batch, never a transfer, is measured.
// The kernel knows the sum exactly. It splits it by what its timer interrupts (100 to 1000 a second) found running, so
// that the split is good for sums of many milliseconds only.
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

/// Of the calling thread so far.
[[nodiscard]] CpuCost thread_cpu_cost() noexcept;
/// Of the calling process so far.
[[nodiscard]] Path::CpuTime process_cpu_time() noexcept;
/// CPU time of the whole machine that the hypervisor gave to others, ns, in steps of 10 ms; 0 if the kernel tells none.
[[nodiscard]] std::uint64_t steal_ns() noexcept;
/// The same, from a text as /proc/stat.
[[nodiscard]] std::uint64_t steal_ns_of(const char* proc_stat) noexcept;

}  // namespace wherry::probe
