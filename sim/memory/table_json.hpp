// SPDX-License-Identifier: Apache-2.0
// Measures the comparison table on a bus, and prints it as JSON: one object per cell, and the simulation's own speed.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <ctime>

#include "sim/memory/traffic.hpp"

namespace wherry::sim::memory {

/// Returns the exit status. The bus must have two ports.
inline int print_table(AxiBus& bus, std::uint64_t cycle_ps) {
  const std::clock_t start = std::clock();
  const char* separator = "";
  fmt::print("{{\"cells\": [");
  const std::vector<Cell> cells = comparison_table();
  for (const Cell& cell : cells) {
    const Rates rates = measure(bus, cell, cycle_ps);
    fmt::print(
        "{}\n  {{\"name\": \"{}\", \"read_gbs\": {:.4f}, \"write_gbs\": {:.4f}, \"second_read_gbs\": {:.4f}, "
        "\"latency_cycles\": {}, \"second_latency_cycles\": {}}}",
        separator, cell.name, rates.read_gbs, rates.write_gbs, rates.second_read_gbs, rates.latency,
        rates.second_latency);
    separator = ",";
  }
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  fmt::print("],\n \"cycles\": {}, \"cpu_seconds\": {:.3f}}}\n", cells.size() * 28'000, seconds);
  return 0;
}

}  // namespace wherry::sim::memory
