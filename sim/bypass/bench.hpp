// SPDX-License-Identifier: Apache-2.0
// Parts of bypass_rtl_bench: runs of the rig, and their recorded figures. The format: bench_main.cpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/bypass/rig.hpp"

namespace wherry::sim::bench {

using Json = nlohmann::json;

struct Settings {
  bool quick = false;
  std::uint64_t seed = 1;
  std::uint32_t rx_entries = 0;  ///< of the core: with few, the rates of fast links are left out
  std::uint64_t frames = 0;      ///< of the soak; 0: its own number
  std::vector<std::string> only;
  std::optional<std::uint32_t> tx_credits{}, rx_batch{};  ///< of all runs, instead of their own
  std::atomic<bool>* interrupted = nullptr;
};

/// The settings of one run, and its place in the results.
struct Run {
  std::string name, group;
  RigOptions rig;
  std::uint32_t bytes = 64;  ///< as it is called: 64 to 1024 with FCS, 300 and 1514 without (see frame_bytes())
  std::uint64_t frames = 10'000;
  std::uint32_t source_mbits = 0;       ///< of what is offered; 0: the NIC's line rate
  pcie::Time function_interval = 0;     ///< of EchoStream
  std::uint32_t load_per_mille = 1000;  ///< of line rate
};
/// Without FCS. The paper's 300 bytes are without it (Table II: 300 bytes of payload on PCIe), as is 1514.
[[nodiscard]] std::uint32_t frame_bytes(std::uint32_t bytes) noexcept;

/// Packets a second that a link carries both ways, by the bytes that a packet needs: docs/design/bypass-rtl.md, Bounds.
struct LinkBound {
  double to_card = 0, from_card = 0;
  [[nodiscard]] double least() const noexcept { return to_card < from_card ? to_card : from_card; }
};
[[nodiscard]] LinkBound link_bound(const bypass::Personality& nic, std::uint32_t frame, const pcie::LinkOptions& link);

/// Runs it and reports. Null: interrupted.
[[nodiscard]] Json measure(const Run& run, const Settings& settings);

/// All runs, by groups.
[[nodiscard]] std::vector<Run> rate_runs(const Settings& settings);
[[nodiscard]] std::vector<Run> latency_runs(const Settings& settings);
[[nodiscard]] std::vector<Run> overload_runs(const Settings& settings);
/// Cycles from port to port of the core, with a packet at a time. One row.
[[nodiscard]] Json measure_cycles(const Settings& settings);
/// All kinds of trouble, in turn, over many seeds (soak.hpp). 0 seeds: the default number. One row.
[[nodiscard]] Json soak(const Settings& settings, std::uint64_t seeds);
/// The parameters that the core was built with.
[[nodiscard]] Json core_shape();
/// The figures, as far as the rows have them.
[[nodiscard]] Json figures(const Json& rows);

}  // namespace wherry::sim::bench
