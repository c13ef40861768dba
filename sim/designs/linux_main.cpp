// SPDX-License-Identifier: Apache-2.0
// designs_linux: boots Linux on VexRiscv in the fourth design of paper 000, and records its memory accesses (`make
// linux-trace`, docs/design/designs.md). The exit status is 0 if Linux powered the board off from user space.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/command_line.hpp"
#include "sim/designs/live_linux.hpp"
#include "sim/designs/neighbours.hpp"
#include "sim/json_output.hpp"

namespace wherry::sim::designs {
namespace {

using Json = nlohmann::json;
using softcore::BusTrace;

/// False: the file cannot be read, or is empty.
bool read(const std::string& file, std::vector<std::uint8_t>& into) {
  std::ifstream in(file, std::ios::binary);
  into.assign(std::istreambuf_iterator<char>(in), {});
  if (in.bad() || into.empty()) fmt::print(stderr, "designs_linux: nothing to read in {}\n", file);
  return !in.bad() && !into.empty();
}

bool write(const std::string& file, const std::vector<std::uint8_t>& bytes) {
  std::ofstream out(file, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (out.fail()) fmt::print(stderr, "designs_linux: cannot write {}\n", file);
  return !out.fail();
}

/// The counts that docs/design/designs.md gives for a recording.
Json counts_of(const BusTrace& trace) {
  std::array<std::uint64_t, 4> kinds{};
  std::uint64_t bytes = 0;
  std::unordered_set<std::uint64_t> pages;
  for (const softcore::BusAccess& access : trace.accesses) {
    ++kinds[static_cast<std::size_t>(access.kind)];
    bytes += access.bytes();
    pages.insert(access.address >> 12);
  }
  return {{"accesses", trace.accesses.size()},
          {"read_words", kinds[0]},
          {"written_words", kinds[1]},
          {"read_lines", kinds[2]},
          {"fetched_lines", kinds[3]},
          {"bytes", bytes},
          {"pages", pages.size()},
          {"cycles", trace.accesses.empty() ? 0 : trace.accesses.back().cycle}};
}

/// Joins windows of kWindowCycles, each from the middle of one of kLinuxWindows equal parts of the boot.
BusTrace slice_of(const BusTrace& boot, std::uint64_t cycles, Json& windows) {
  BusTrace slice{.clock_hz = boot.clock_hz, .accesses = {}};
  const auto at = [&boot](std::uint64_t cycle) {
    return std::ranges::lower_bound(boot.accesses, cycle, {}, &softcore::BusAccess::cycle);
  };
  for (std::uint32_t i = 0; i < kLinuxWindows; ++i) {
    const std::uint64_t begin = cycles * (2 * i + 1) / (2 * kLinuxWindows) - kWindowCycles / 2;
    BusTrace window{.clock_hz = boot.clock_hz, .accesses = {at(begin), at(begin + kWindowCycles)}};
    Json row = counts_of(window);
    row["boot_cycle"] = begin;
    row.erase("cycles");
    windows.push_back(row);
    for (softcore::BusAccess access : window.accesses) {
      access.cycle = access.cycle - begin + i * kWindowCycles;
      slice.accesses.push_back(access);
    }
  }
  return slice;
}

struct Options {
  std::string sbi, device_tree, kernel, trace, slice, json;
  std::uint64_t cycles = 400'000'000;
};

/// init reports its result on the console (sim/softcore/linux/init.c).
bool all_was_well(LiveLinux& linux, const Card& card) {
  constexpr std::uint32_t kLinuxSaidSo = 1;  ///< sbi.c
  std::string why;
  const std::string& console = linux.core().console();
  if (!linux.core().fault().empty()) why = linux.core().fault();
  if (!card.violation().empty()) why = card.violation();
  for (const std::string_view said : {"init: user space", "init: file ok", "init: child ok"})
    if (console.find(said) == std::string::npos) why = fmt::format("the console does not say \"{}\"", said);
  if (linux.core().off() != kLinuxSaidSo) why = fmt::format("the power switch is {}", linux.core().off());
  if (!why.empty()) fmt::print(stderr, "designs_linux: {}\n", why);
  return why.empty();
}

int boot(const Options& options) {
  LinuxImage image;
  if (!read(options.sbi, image.sbi) || !read(options.device_tree, image.device_tree) ||
      !read(options.kernel, image.kernel))
    return 1;
  LiveLinux* linux = nullptr;
  Card card({.design = Design::kLinux}, live_linux(image, linux));
  softcore::VexCore& core = linux->core();
  BusTrace trace;
  core.record(&trace);
  const std::clock_t begin = std::clock();
  std::size_t shown = 0;
  const memory::AxiRequest idle;
  while (core.off() == 0 && core.counts().cycles < options.cycles && core.fault().empty()) {
    for (unsigned i = 0; i < 10'000 && core.off() == 0; ++i) card.step(idle);
    fmt::print(stderr, "{}", core.console().substr(shown));
    shown = core.console().size();
  }
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  const softcore::VexCounts& counts = core.counts();
  Json windows = Json::array();
  const BusTrace slice = slice_of(trace, counts.cycles, windows);
  Json out{{"schema", "wherry.designs_linux/1"},
           {"simulated", true},
           {"core_cycles", counts.cycles},
           {"clock_hz", trace.clock_hz},
           {"waited_cycles", counts.waited},
           {"written_bytes", counts.written_bytes},
           {"counted_by_the_core",
            {{"read_words", counts.read_words},
             {"written_words", counts.written_words},
             {"read_lines", counts.read_lines},
             {"fetched_lines", counts.fetched_lines}}},
           {"boot", counts_of(trace)},
           {"window_cycles", kWindowCycles},
           {"windows", windows},
           {"slice", counts_of(slice)},
           {"console", core.console()}};
  fmt::print(stderr, "designs_linux: {} cycles of the core, {} accesses, {:.1f} s of CPU\n", counts.cycles,
             trace.accesses.size(), seconds);
  if (!all_was_well(*linux, card)) return 1;
  if (!options.trace.empty() && !write(options.trace, trace.encode())) return 1;
  if (!options.slice.empty() && !write(options.slice, slice.encode())) return 1;
  return write_document(out, options.json, "designs_linux") ? 0 : 1;
}

}  // namespace
}  // namespace wherry::sim::designs

int main(int argc, char** argv) {
  wherry::sim::designs::Options options;
  CLI::App app{
      "Boots Linux on a simulated soft core beside a DMA engine, and records its bus (docs/design/designs.md)"};
  app.add_option("--sbi", options.sbi, "machine-mode program, as it lies in memory")->required();
  app.add_option("--dtb", options.device_tree, "device tree")->required();
  app.add_option("--kernel", options.kernel, "Image of Linux")->required();
  app.add_option("--trace", options.trace, "where the whole recording goes");
  app.add_option("--slice", options.slice, "where the slice goes that the tests play");
  app.add_option("--json", options.json, "where its numbers go; default: standard output");
  app.add_option("--cycles", options.cycles, "of the core, at most");
  wherry::parse_command_line(app, argc, argv);
  return wherry::sim::designs::boot(options);
}
