// SPDX-License-Identifier: Apache-2.0
// Boots Linux on the simulated soft core and records its bus: `softcore_linux SBI TREE KERNEL TRACE [FROM COUNT]`.
// tools/linux_trace.py makes the files and calls it.
#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>

#include "sim/softcore/vex_core.hpp"

namespace {

using namespace wherry::sim::softcore;

constexpr std::uint64_t kMostCycles = 600'000'000;

std::vector<std::uint8_t> file(const char* name) {
  std::ifstream in(name, std::ios::binary);
  std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(in), {}};
  if (!in || bytes.empty()) {
    fmt::print(stderr, "softcore_linux: {} cannot be read, or is empty\n", name);
    std::exit(2);
  }
  return bytes;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 5 && count != 7) {
    fmt::print(stderr, "softcore_linux: SBI TREE KERNEL TRACE [FROM COUNT], FROM and COUNT in accesses\n");
    return 2;
  }
  VexBoard board;
  board.load(kBoardMemory, file(arguments[1]));
  board.load(kBoardMemory + 0x20'0000, file(arguments[2]));
  board.load(kBoardMemory + 0x40'0000, file(arguments[3]));
  board.on_console = [](char letter) {
    std::putchar(letter);
    std::fflush(stdout);
  };
  board.on_fault = [](std::uint32_t word) { fmt::print(stderr, "fault: {:#x}\n", word); };
  BusTrace trace;
  board.record(&trace);
  const std::clock_t start = std::clock();
  const std::uint32_t end = board.run(kMostCycles);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  const std::size_t all = trace.accesses.size();
  std::size_t writes = 0;
  for (const BusAccess& access : trace.accesses) writes += access.write ? 1 : 0;
  fmt::print("\nstopped: {}; {} cycles, {} accesses, {:.0f} % of them writes, {:.1f} s of CPU\n", end, board.cycles(),
             all, 100.0 * static_cast<double>(writes) / static_cast<double>(all), seconds);
  if (count == 7) {
    const std::size_t from = std::strtoull(arguments[5], nullptr, 10), some = std::strtoull(arguments[6], nullptr, 10);
    if (from + some > all) {
      fmt::print(stderr, "softcore_linux: accesses {} to {} of {}\n", from, from + some, all);
      return 2;
    }
    trace.accesses.erase(trace.accesses.begin() + static_cast<std::ptrdiff_t>(from + some), trace.accesses.end());
    trace.accesses.erase(trace.accesses.begin(), trace.accesses.begin() + static_cast<std::ptrdiff_t>(from));
    const std::uint64_t first = trace.accesses.front().cycle;
    for (BusAccess& access : trace.accesses) access.cycle -= first;
  }
  const std::vector<std::uint8_t> bytes = trace.encode();
  std::ofstream out(arguments[4], std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  out.close();
  fmt::print("{}: {} accesses, {} bytes\n", arguments[4], trace.accesses.size(), bytes.size());
  return end == 1 && out ? 0 : 1;
}
