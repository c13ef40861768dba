// SPDX-License-Identifier: Apache-2.0
// Compares rings in the host's memory with rings in the card, in simulation: the same core (64 slots and transmit
// descriptors), NIC model (82599, 10 Gbit/s) and frames, in place. docs/design/bypass-host-rings.md
//
//   bypass_host_rings_bench [--frames N] [--bytes N]... [--load PER_MILLE]... [--turn-ns N] [--json FILE]
//
// Columns of a row: way (switch, intel_xeon_4110: rings in the card; host_memory), bytes (without FCS), load (share of
// line rate), lost (share of the frames), mpps out, mean_us and p99_us from a frame's last bit in to its last bit out,
// card_bytes_in, card_bytes_out (per frame, on the card's link, with framing). Of host_memory also the processor's work
// per frame: window_writes, tails, copies, and the share of its turns that found work.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "sim/bypass/echo.hpp"
#include "sim/bypass/host_rig.hpp"

namespace {

using namespace wherry::sim;
using Json = nlohmann::ordered_json;

constexpr pcie::Time kSettle = 20 * pcie::kMicrosecond, kQuiet = 200 * pcie::kMicrosecond;
constexpr double kWarmUp = 0.2;

struct Sample {
  std::uint64_t bytes_in = 0, bytes_out = 0;
};
template <class AnyRig>
Sample sample(const AnyRig& rig) {
  const auto bytes = [&](bool up) {
    const pcie::LinkCounters& link = rig.fabric.link_counters(rig.card_node, up);
    return link.payload_bytes + link.header_bytes;
  };
  return {.bytes_in = bytes(false), .bytes_out = bytes(true)};
}

/// `run(time)` lets time pass; `dry()` runs until nothing is in flight.
template <class AnyRig, class Run, class Dry>
Json measure(AnyRig& rig, std::uint64_t frames, std::uint32_t bytes, std::uint32_t load, Run run, Dry dry) {
  run(rig.queue.now() + kSettle);
  const Sample before = sample(rig);
  rig.meter.warm_up = static_cast<std::uint64_t>(kWarmUp * static_cast<double>(frames));
  const nic::Source source(rig.queue, rig.meter,
                           {.frames = frames, .sizes = {bytes}, .load_per_mille = load, .start = rig.queue.now()});
  while (!source.finished()) run(rig.queue.now() + kSettle);
  dry();
  const Sample after = sample(rig);
  std::vector<pcie::Time> latencies = rig.meter.latencies();
  std::ranges::sort(latencies);
  const auto count = static_cast<double>(std::max<std::size_t>(latencies.size(), 1));
  const double mean = std::accumulate(latencies.begin(), latencies.end(), 0.0) / count;
  const auto out = static_cast<double>(std::max<std::uint64_t>(rig.meter.checker().frames, 1));
  const auto seconds = static_cast<double>(rig.meter.last_out() - rig.meter.first_out()) / 1e12;
  return {{"bytes", bytes},
          {"load", load / 1000.0},
          {"frames", frames},
          {"wrong", rig.meter.checker().wrong + rig.meter.checker().reordered},
          {"lost", 1 - static_cast<double>(rig.meter.checker().frames) / static_cast<double>(frames)},
          {"mpps", seconds > 0 ? static_cast<double>(rig.meter.measured_out() - 1) / seconds / 1e6 : 0},
          {"mean_us", mean / pcie::kMicrosecond},
          {"p99_us", latencies.empty() ? 0.0
                                       : static_cast<double>(latencies[static_cast<std::size_t>(0.99 * (count - 1))]) /
                                             pcie::kMicrosecond},
          {"card_bytes_in", static_cast<double>(after.bytes_in - before.bytes_in) / out},
          {"card_bytes_out", static_cast<double>(after.bytes_out - before.bytes_out) / out}};
}

Json in_card(Topology topology, std::uint64_t frames, std::uint32_t bytes, std::uint32_t load) {
  InPlaceEcho echo;
  Rig rig({.topology = topology}, &echo, nullptr);
  Json row{{"way", std::string(name_of(topology))}};
  row.update(measure(rig, frames, bytes, load, [&](pcie::Time end) { rig.queue.run(end); }, [&] { rig.queue.run(); }));
  return row;
}

Json in_host(pcie::Time turn, std::uint64_t frames, std::uint32_t bytes, std::uint32_t load) {
  InPlaceEcho echo;
  HostRig rig({.turn = turn}, &echo, nullptr);
  Json row{{"way", "host_memory"}};
  row.update(
      measure(rig, frames, bytes, load, [&](pcie::Time end) { rig.run_until(end); }, [&] { rig.run_dry(kQuiet); }));
  const wherry::bypass::HostRingsCounters& host = rig.rings().counters();
  const auto out = static_cast<double>(std::max<std::uint64_t>(rig.meter.checker().frames, 1));
  row["window_writes"] = static_cast<double>(host.window_writes) / out;
  row["tails"] = static_cast<double>(host.tails) / out;
  row["copies"] = static_cast<double>(host.copies) / out;
  row["turn_ns"] = static_cast<double>(turn) / pcie::kNanosecond;
  if (!rig.health) row["error"] = rig.health.message();
  return row;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Rings in the host's memory beside rings in the card: simulated");
  std::uint64_t frames = 5000;
  std::vector<std::uint32_t> sizes{60, 300, 1514};
  std::vector<std::uint32_t> loads{50, 250, 500, 1000};
  std::uint32_t turn = 100;
  std::string file;
  app.add_option("--frames", frames, "frames a row")->check(CLI::Range(100, 10'000'000));
  app.add_option("--bytes", sizes, "frame sizes, without FCS")->check(CLI::Range(60, 9018));
  app.add_option("--load", loads, "of line rate, per mille")->check(CLI::Range(1, 1000));
  app.add_option("--turn-ns", turn, "the host looks at everything once in so long")->check(CLI::Range(10, 100'000));
  app.add_option("--json", file, "write the rows to this file");
  CLI11_PARSE(app, argc, argv);
  Json rows = Json::array();
  fmt::print("{:<16} {:>5} {:>5} {:>7} {:>6} {:>8} {:>8} {:>8} {:>9}\n", "way", "bytes", "load", "lost", "Mpps",
             "mean us", "p99 us", "link in", "link out");
  for (const std::uint32_t bytes : sizes)
    for (const std::uint32_t load : loads)
      for (int way = 0; way < 3; ++way) {
        Json row = way == 2 ? in_host(turn * pcie::kNanosecond, frames, bytes, load)
                            : in_card(way == 0 ? Topology::kSwitch : Topology::kIntel, frames, bytes, load);
        fmt::print("{:<16} {:>5} {:>5.2f} {:>7.4f} {:>6.2f} {:>8.2f} {:>8.2f} {:>8.0f} {:>9.0f}\n",
                   row["way"].get<std::string>(), bytes, load / 1000.0, row["lost"].get<double>(),
                   row["mpps"].get<double>(), row["mean_us"].get<double>(), row["p99_us"].get<double>(),
                   row["card_bytes_in"].get<double>(), row["card_bytes_out"].get<double>());
        if (row["wrong"] != 0 || row.contains("error")) {
          fmt::print(stderr, "{}\n", row.dump());
          return 1;
        }
        rows.push_back(std::move(row));
      }
  if (!file.empty()) std::ofstream(file) << Json{{"rows", rows}}.dump(1) << "\n";
  return 0;
}
