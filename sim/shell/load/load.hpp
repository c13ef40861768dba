// SPDX-License-Identifier: Apache-2.0
// The thesis's shell with many packets in flight: rates, latencies and losses. docs/design/shell-load.md. Nothing here
// was measured on a card, and the thesis has no such figures. All figures are predictions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/shell/bed.hpp"
#include "sim/shell/load/limits.hpp"

namespace wherry::sim::shell::load {

/// Packets of one path and size.
struct Flow {
  Path path = Path::kWireToHost;
  std::uint32_t bytes = 1024;  ///< a multiple of 32, 64 to 4096
  double gbytes_per_s = 1;     ///< offered: 10^9 bytes of packets a second
};

struct LoadOptions {
  std::vector<Flow> flows;
  std::uint32_t packets = 2000;  ///< of all flows together
  std::uint64_t seed = 1;
  bool regular = false;  ///< packets come at equal distances; otherwise by chance, as a Poisson process
  Parameters parameters{};
  Limits limits{};
};

/// Of one flow. Times are in ns from when a packet was offered, whether or not the shell could take it then. They cover
/// packets that were offered after the first fifth and not dropped.
struct FlowFound {
  Flow flow;
  std::uint32_t offered = 0, delivered = 0, dropped = 0;  ///< packets of the whole run
  double gbytes_per_s = 0;  ///< delivered while packets were offered, after the first fifth
  bool saturated = false;   ///< fewer than 97 % of what was offered then
  double mean_ns = 0, p50_ns = 0, p99_ns = 0, most_ns = 0;
  double told_ns = 0;  ///< mean time until the host knows; 0: the path has no host's queue
};

struct LoadFound {
  std::vector<FlowFound> flows;
  double duration_ns = 0;   ///< until the last packet was over
  std::uint64_t wrong = 0;  ///< bytes that differ, and rules that were broken
  std::uint64_t adapter_received = 0, adapter_dropped = 0;
  std::uint32_t adapter_most = 0;              ///< beats held
  std::uint64_t fetches = 0, descriptors = 0;  ///< descriptor reads, and what they brought
  std::uint64_t entries = 0, statuses = 0, interrupts = 0;
  std::string broken;  ///< the first rule; empty: none
};

[[nodiscard]] LoadFound run(const LoadOptions& options);

/// Computed by hand, from sizes alone: a path carries at most what its slowest stage does.
struct Bound {
  std::string_view stage;
  double gbytes_per_s;
};
/// All stages of the path, of which the least is the bound.
[[nodiscard]] std::vector<Bound> bounds_of(Path path, std::uint32_t bytes, const Parameters& p, const Limits& limits);
[[nodiscard]] Bound bound_of(Path path, std::uint32_t bytes, const Parameters& p, const Limits& limits);

}  // namespace wherry::sim::shell::load
