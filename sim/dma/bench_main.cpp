// SPDX-License-Identifier: Apache-2.0
// dma_data_bench: measures the rates of the Verilated data part of the DMA engine with a model of a PCIe link
// (host_link.hpp). Every figure comes from a simulation, which docs/design/dma-data.md describes.
//
// The JSON (schema "wherry.dma_data_bench/1"):
//   schema, simulated (true)
//   rates  a list of: name, way ("h2c", "c2h"), bytes, depth, rtt_ns, completion, mrrs, mps, host_off, card_off,
//   gbytes_per_s, millions_per_s,
//          bound_gbytes_per_s, share (of it), latency_ns (turn to answer), up_use, down_use (of the link's time),
//          cycles
//   soak   seeds, bytes, turns, failed (turns that a fault ended), faults, resets, timed_out, cycles, cpu_s
// The exit status is 1 if a byte or an answer was wrong.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ctime>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/command_line.hpp"
#include "sim/dma/rate.hpp"
#include "sim/dma/soak.hpp"
#include "sim/json_output.hpp"

namespace {

using namespace wherry::sim::dma;
using Json = nlohmann::json;

struct Named {
  std::string name;
  RateRun run;
};

/// `think`: 0 if turns wait already.
RateRun run_of(Way way, std::uint32_t bytes, unsigned depth, double think, std::uint32_t transfers) {
  return {.way = way, .bytes = bytes, .depth = depth, .think_ns = think, .transfers = transfers, .rig = {}};
}

std::vector<Named> rate_runs() {
  constexpr double kThink = 1410;
  constexpr unsigned kPlenty = 480;
  std::vector<Named> runs;
  for (const Way way : {Way::kToCard, Way::kToHost}) {
    const std::string prefix = way == Way::kToCard ? "h2c" : "c2h";
    for (const unsigned depth : {1U, 2U, 4U, 8U, 16U, 32U}) {
      runs.push_back({fmt::format("{}_4k_depth{}", prefix, depth), run_of(way, 4096, depth, kThink, 60 * depth + 60)});
    }
    for (const std::uint32_t bytes : {64U, 128U, 256U, 512U, 1024U, 2048U, 65536U}) {
      runs.push_back({fmt::format("{}_{}_plenty", prefix, bytes),
                      run_of(way, bytes, bytes > 4096 ? 16 : kPlenty, kThink, bytes > 4096 ? 60 : 4000)});
    }
    for (const double rtt : {400.0, 1200.0, 2000.0, 3000.0}) {
      if (way == Way::kToHost) break;  // writes are posted
      Named far{fmt::format("{}_4k_rtt{}", prefix, rtt), run_of(way, 4096, 32, kThink, 1000)};
      far.run.rig.link.rtt_ns = rtt;
      runs.push_back(far);
    }
    for (const auto& [host, card] : {std::pair{4U, 0U}, {0U, 4U}, {1U, 0U}, {0U, 1U}, {3U, 62U}}) {
      Named odd{fmt::format("{}_4k_off_{}_{}", prefix, host, card), run_of(way, 4096, 32, kThink, 800)};
      odd.run.host_off = host;
      odd.run.card_off = card;
      runs.push_back(odd);
    }
  }
  // Each transfer also needs a descriptor of 32 bytes. 16 are fetched at once, in two completions of 256 bytes with 20
  // bytes of overhead each.
  Named small{"h2c_64_with_descriptors", run_of(Way::kToCard, 64, kPlenty, kThink, 8000)};
  small.run.rig.link.extra_down_per_read = 32 + 2 * 20.0 / 16;
  runs.push_back(small);
  Named narrow{"h2c_4k_completions_64", run_of(Way::kToCard, 4096, 32, kThink, 800)};
  narrow.run.rig.link.completion = 64;
  runs.push_back(narrow);
  for (const unsigned mps : {0U, 2U}) {
    Named other{fmt::format("c2h_4k_mps{}", 128U << mps), run_of(Way::kToHost, 4096, 32, kThink, 800)};
    other.run.rig.mps = mps;
    runs.push_back(other);
  }
  for (const unsigned mrrs : {0U, 5U}) {
    Named other{fmt::format("h2c_4k_mrrs{}", 128U << mrrs), run_of(Way::kToCard, 4096, 32, kThink, 800)};
    other.run.rig.mrrs = mrrs;
    runs.push_back(other);
  }
  return runs;
}

Json row_of(const Named& named, const RateResult& found) {
  const RateRun& run = named.run;
  return {{"name", named.name},
          {"way", run.way == Way::kToCard ? "h2c" : "c2h"},
          {"bytes", run.bytes},
          {"depth", run.depth},
          {"rtt_ns", run.rig.link.rtt_ns},
          {"completion", run.rig.link.completion},
          {"mrrs", 128U << run.rig.mrrs},
          {"mps", 128U << run.rig.mps},
          {"host_off", run.host_off},
          {"card_off", run.card_off},
          {"gbytes_per_s", found.gbytes},
          {"millions_per_s", found.millions},
          {"bound_gbytes_per_s", found.bound_gbytes},
          {"share", found.share},
          {"latency_ns", found.latency_ns},
          {"up_use", found.up_use},
          {"down_use", found.down_use},
          {"cycles", found.cycles}};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Measures the Verilated data part of the DMA engine beside a model of a PCIe link (docs/design/dma-data.md)",
      "dma_data_bench"};
  std::string file;
  std::vector<std::string> only;
  std::uint64_t soak_bytes = 0, seeds = 40, seed = 1;
  app.add_option("--json", file, "where the results go, too");
  app.add_option("--only", only, "rates whose name begins so; may be given several times");
  app.add_option("--soak", soak_bytes, "random bytes with faults, over all seeds, instead of rates");
  app.add_option("--seeds", seeds, "of the soak");
  app.add_option("--seed", seed, "the first of the soak");
  wherry::parse_command_line(app, argc, argv);
  const std::vector<Named> runs = rate_runs();
  std::vector<std::string> known;
  for (const Named& named : runs) known.push_back(named.name);
  wherry::refuse_unknown(app, "--only", only, known);
  Json out{{"schema", "wherry.dma_data_bench/1"}, {"simulated", true}, {"rates", Json::array()}};
  bool good = true;
  if (soak_bytes != 0) {
    SoakResult all;
    const std::clock_t begin = std::clock();
    for (std::uint64_t i = 0; i < seeds; ++i) {
      const SoakResult one = soak(seed + i, soak_bytes / seeds, i % 4 != 0);
      all.bytes += one.bytes;
      all.turns += one.turns;
      all.failed += one.failed;
      all.faults += one.faults;
      all.resets += one.resets;
      all.timed_out += one.timed_out;
      all.cycles += one.cycles;
      if (!one.error.empty()) {
        fmt::print(stderr, "seed {}: {}\n", seed + i, one.error);
        good = false;
      }
    }
    const double cpu = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    fmt::print(
        "soak: {} seeds, {} bytes, {} turns, {} of them failed, {} faults, {} resets, {} time-outs, {} cycles, {:.1f} "
        "s of CPU\n",
        seeds, all.bytes, all.turns, all.failed, all.faults, all.resets, all.timed_out, all.cycles, cpu);
    out["soak"] = {{"seeds", seeds},       {"bytes", all.bytes},         {"turns", all.turns},
                   {"failed", all.failed}, {"faults", all.faults},       {"resets", all.resets},
                   {"cycles", all.cycles}, {"timed_out", all.timed_out}, {"cpu_s", cpu}};
  } else {
    for (const Named& named : runs) {
      if (!only.empty() &&
          std::ranges::none_of(only, [&](const std::string& one) { return named.name.starts_with(one); }))
        continue;
      const RateResult found = measure(named.run);
      if (!found.error.empty()) {
        fmt::print(stderr, "{}: {}\n", named.name, found.error);
        good = false;
      }
      fmt::print(
          "{:26} {:6.2f} GB/s  {:6.1f} M/s  {:5.1f} % of {:5.2f}  latency {:6.0f} ns  up {:3.0f} %, down {:3.0f} %  "
          "beats a burst {:.1f}\n",
          named.name, found.gbytes, found.millions, 100 * found.share, found.bound_gbytes, found.latency_ns,
          100 * found.up_use, 100 * found.down_use,
          static_cast<double>(named.run.transfers - named.run.transfers / 4 - 1) * named.run.bytes / 64 /
              static_cast<double>(std::max<std::uint64_t>(found.bursts, 1)));
      out["rates"].push_back(row_of(named, found));
    }
  }
  if (!file.empty() && !wherry::sim::write_document(out, file, "dma_data_bench")) return 1;
  return good ? 0 : 1;
}
