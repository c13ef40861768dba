// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "sim/bypass/bench.hpp"

namespace wherry::sim::bench {
namespace {

/// A port speed, with a NIC that has it and the PCIe links that carry it. The E810 is a Gen4 x16 card; the Alveo U50
/// has Gen3 x16 (its paper uses x8).
struct Speed {
  std::uint32_t gbits;
  std::string_view nic;
  pcie::LinkOptions nic_link, card_link;
  /// Replaces the E810 model's caches, which are guesses: with them one queue reaches 39 M packets/s (rows nic_...).
  std::uint32_t nic_prefetch = 0;
};
constexpr std::uint32_t kDeep = 192;  ///< covers a round trip of 0.9 us at 200 M packets/s
constexpr std::uint32_t kMbits = 1000;
const std::array<Speed, 4>& speeds() {
  static const std::array<Speed, 4> all{
      Speed{10, "ixgbe", {.generation = 2, .lanes = 8}, {.generation = 3, .lanes = 8}},
      Speed{25, "ice", {.generation = 4, .lanes = 16}, {.generation = 3, .lanes = 16}},
      Speed{40, "ice", {.generation = 4, .lanes = 16}, {.generation = 3, .lanes = 16}, kDeep},
      Speed{100, "ice", {.generation = 4, .lanes = 16}, {.generation = 3, .lanes = 16}, kDeep}};
  return all;
}

RigOptions rig_of(const Speed& speed, bool in_place) {
  RigOptions rig;
  rig.nic = speed.nic;
  rig.mbits = speed.gbits * kMbits;
  rig.nic_link = speed.nic_link;
  rig.card_link = speed.card_link;
  rig.nic_prefetch = speed.nic_prefetch;
  rig.in_place = in_place;
  return rig;
}

std::string_view short_name(Topology topology) {
  return topology == Topology::kSwitch ? "switch" : topology == Topology::kIntel ? "intel" : "amd";
}
/// Free slots per receive tail in runs that are compared with the paper: a quarter of its ring.
constexpr std::uint32_t kRxBatch = 16;
std::string_view way(bool in_place) { return in_place ? "in_place" : "stream"; }

}  // namespace

std::vector<Run> rate_runs(const Settings& settings) {
  std::vector<Run> runs;
  const std::vector<std::uint32_t> sizes =
      settings.quick ? std::vector<std::uint32_t>{64, 300} : std::vector<std::uint32_t>{64, 128, 300, 512, 1024, 1514};
  // Slots must cover a packet's stay in the card: 64 slots do at 10 Gbit/s and 300 bytes, but not at 64 bytes.
  const bool few = settings.rx_entries < 256;
  for (const Speed& speed : speeds())
    for (const std::uint32_t bytes : sizes)
      for (const bool in_place : {true, false}) {
        if (few && (speed.gbits > 10 || bytes < 300)) continue;
        // Overload must first fill the NIC's packet buffer (1 MiB: 11,000 frames of 60 bytes in lines of 32).
        const bool long_run = speed.gbits == 100;  // and its slots
        const std::uint64_t frames = long_run ? 60'000 : settings.quick ? 4'000 : 20'000;
        runs.push_back({.name = fmt::format("rate_{}b_{}g_{}", bytes, speed.gbits, way(in_place)),
                        .group = "rates",
                        .rig = rig_of(speed, in_place),
                        .bytes = bytes,
                        .frames = frames});
      }
  if (few) return runs;
  // The core's rate with descriptors of 16 bytes, for comparison with the 107 M packets/s of research section 3. No NIC
  // of 100 Gbit/s has such descriptors.
  for (const bool in_place : {true, false}) {
    Run run{.name = fmt::format("rate_64b_100g_16_byte_descriptors_{}", way(in_place)),
            .group = "rates",
            .rig = rig_of(speeds()[3], in_place),
            .bytes = 64,
            .frames = 60'000};
    run.rig.nic = "ixgbe";
    run.rig.nic_writeback = 4;
    runs.push_back(run);
  }
  for (const std::size_t which : {2UL, 3UL}) {
    Run run{.name = fmt::format("nic_64b_{}g_in_place", speeds()[which].gbits),
            .group = "rates",
            .rig = rig_of(speeds()[which], true),
            .bytes = 64,
            .frames = settings.quick ? 4'000U : 20'000U};
    run.rig.nic_prefetch = 0;
    runs.push_back(run);
  }
  return runs;
}

std::vector<Run> latency_runs(const Settings& settings) {
  std::vector<Run> runs;
  const std::uint64_t frames = settings.quick ? 4'000 : 20'000;
  for (const Topology topology : {Topology::kSwitch, Topology::kIntel, Topology::kAmd}) {
    const std::string_view name = short_name(topology);
    for (const bool in_place : {true, false}) {
      Run run{.name = fmt::format("{}_300b_10g_{}", name, way(in_place)),
              .group = "latency",
              .rig = rig_of(speeds()[0], in_place),
              .bytes = 300,
              // Enough frames to overrun the NIC's packet buffer (512 KiB: 1,638 frames).
              .frames = topology == Topology::kIntel && !settings.quick ? 60'000 : frames};
      run.rig.topology = topology;
      run.rig.rx_batch = kRxBatch;
      runs.push_back(run);
    }
  }
  // Latency and loss against the offered rate, as in the paper's Fig. 8.
  for (const Topology topology : {Topology::kSwitch, Topology::kIntel, Topology::kAmd})
    for (std::uint32_t load = 100; load <= 1000; load += settings.quick ? 450 : 100) {
      Run run{.name = fmt::format("curve_{}_300b_{}", short_name(topology), load / 10),
              .group = "curve",
              .rig = rig_of(speeds()[0], true),
              .bytes = 300,
              .frames = settings.quick                               ? 1'000U
                        : topology == Topology::kIntel && load > 800 ? 20'000U
                                                                     : 5'000U,
              .load_per_mille = load};
      run.rig.topology = topology;
      run.rig.rx_batch = kRxBatch;
      runs.push_back(run);
    }
  return runs;
}

std::vector<Run> overload_runs(const Settings& settings) {
  std::vector<Run> runs;
  const std::uint64_t frames = settings.quick ? 6'000 : 60'000;
  for (const bool in_place : {true, false})
    for (const Topology topology : {Topology::kSwitch, Topology::kIntel, Topology::kAmd}) {
      const std::string_view name = short_name(topology);
      // Twice as much comes in as the port can send.
      Run run{.name = fmt::format("overload_port_{}_{}", name, way(in_place)),
              .group = "overload",
              .rig = rig_of(speeds()[0], in_place),
              .bytes = 300,
              .frames = frames};
      run.rig.topology = topology;
      run.rig.rx_batch = kRxBatch;
      run.source_mbits = 2 * run.rig.mbits;
      runs.push_back(run);
    }
  // The function takes one frame per 400 ns, but gets one per 259 ns.
  Run slow{.name = "overload_function_stream",
           .group = "overload",
           .rig = rig_of(speeds()[0], false),
           .bytes = 300,
           .frames = frames,
           .function_interval = 400 * pcie::kNanosecond};
  slow.rig.rx_batch = kRxBatch;
  runs.push_back(slow);
  return runs;
}

Json figures(const Json& rows) {
  Json found = Json::object();
  const auto row = [&rows](std::string_view name) -> const Json* {
    for (const Json& one : rows)
      if (one["name"] == name) return &one;
    return nullptr;
  };
  // Takes the worse value of the two ways, in place and stream.
  const auto worst = [&](const std::string& name, const char* part, const char* value, bool most) -> Json {
    Json result;
    for (const bool in_place : {true, false}) {
      const Json* const one = row(fmt::format("{}_{}", name, way(in_place)));
      if (one == nullptr) continue;
      const double here = (*one)[part][value].get<double>();
      if (result.is_null() || (most ? here > result.get<double>() : here < result.get<double>())) result = here;
    }
    return result;
  };
  const auto put = [&](const char* figure, const Json& value) {
    if (!value.is_null()) found[figure] = value;
  };
  put("rate_64b_10g", worst("rate_64b_10g", "rate", "share_of_line", false));
  put("rate_64b_25g", worst("rate_64b_25g", "rate", "share_of_line", false));
  put("rate_64b_40g", worst("rate_64b_40g", "rate", "share_of_line", false));
  put("rate_64b_100g_of_link", worst("rate_64b_100g", "rate", "share_of_budget", false));
  put("flow_control_bytes_per_packet", worst("rate_64b_10g", "per_packet", "flow_control_bytes", true));
  put("switch_latency_us", worst("switch_300b_10g", "latency_us", "mean", true));
  put("tails_per_packet", worst("switch_300b_10g", "per_packet", "tails", true));
  put("intel_root_latency_us", worst("intel_300b_10g", "latency_us", "mean", true));
  double reordered = 0, uncounted = 0, cost = 0;
  bool overloads = false;
  for (const Json& one : rows) {
    if (one["group"] == "latency" && one["name"].get<std::string>().starts_with("intel")) {
      const double lost = one["frames"]["in"].get<double>() - one["frames"]["out"].get<double>();
      found["intel_root_loss_10g"] =
          std::max(found.value("intel_root_loss_10g", 0.0), lost / one["frames"]["in"].get<double>());
    }
    if (one["group"] != "overload") continue;
    overloads = true;
    reordered += one["frames"]["reordered"].get<double>();
    uncounted += std::abs(one["frames"]["lost_uncounted"].get<double>());
    // What is missing from the rate of the bottleneck: the port, the function, or the root's request server.
    cost = std::max(cost, 1 - one["rate"]["share_of_limit"].get<double>());
  }
  if (overloads) {
    found["overload_reordered"] = reordered;
    found["overload_lost_uncounted"] = uncounted;
    found["overload_cost"] = cost;
  }
  const Json* const cycles = row("cycles");
  if (cycles != nullptr) {
    found["rx_cycles"] = (*cycles)["cycles"]["rx"]["max"];
    found["tx_cycles"] = (*cycles)["cycles"]["tx"]["max"];
    found["inplace_cycles"] = (*cycles)["cycles"]["inplace"]["max"];
  }
  return found;
}

}  // namespace wherry::sim::bench
