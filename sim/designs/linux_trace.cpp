// SPDX-License-Identifier: Apache-2.0
// Memory traffic of Linux on a soft core, made by numbers of a boot. Counted over Linux 6.1 booting to user space on
// VexRiscv with a write-through cache (research of probe, section 2 and 4): 7.74 million accesses in 152 million
// cycles, three of five are writes, 737 pages.
#include "base/random.hpp"
#include "sim/designs/neighbours.hpp"

namespace wherry::sim::designs {
namespace {

constexpr std::size_t kAccesses = 60'000;
constexpr std::uint32_t kMeanCycles10 = 196;  ///< tenths of a cycle between two accesses
constexpr std::uint32_t kPages = 737, kPageBytes = 4096, kLineBytes = 32;
constexpr std::uint32_t kWritesOf10 = 6;
constexpr std::uint32_t kRun = 8;  ///< assumed: accesses of one kind in a run, to following places, at most

softcore::BusTrace make() {
  softcore::BusTrace trace;
  SplitMix64 random(1);
  std::uint64_t cycle10 = 0;
  while (trace.accesses.size() < kAccesses) {
    const bool write = random.below(10) < kWritesOf10;
    const std::uint32_t step = write ? 4 : kLineBytes, run = 1 + random.below(kRun);
    std::uint64_t address =
        std::uint64_t{random.below(kPages)} * kPageBytes + random.below(kPageBytes / kLineBytes) * kLineBytes;
    for (std::uint32_t i = 0; i < run; ++i, address += step) {
      cycle10 += 1 + random.below(2 * kMeanCycles10);
      trace.accesses.push_back({cycle10 / 10, address, write});
    }
  }
  return trace;
}

}  // namespace

const softcore::BusTrace& linux_trace() {
  static const softcore::BusTrace trace = make();
  return trace;
}

std::string_view linux_traffic_name() { return "synthetic: rate, writes and pages of a boot"; }

}  // namespace wherry::sim::designs
