// SPDX-License-Identifier: Apache-2.0
// dma_card_bench: measures the DMA engine as a card, with its driver and simulated PCIe between them
// (docs/design/dma-card.md). Every figure comes from a simulation.
//
// The JSON (schema "wherry.dma_card_bench/1"):
//   schema, simulated (true)
//   bars   by name (issue 14): value, target, at_least (false: at most), pass; bound and unit, where there are some
//   rates  a list of: name, way ("h2c", "c2h"), bytes, depth, channels, bell ("tail", "descriptor"), rtt_ns,
//   gbytes_per_s, millions_per_s,
//          bound_gbytes_per_s, share (of it), bound_with_dllps_gbytes_per_s, share_with_dllps (see rate.hpp),
//          latency_us, unfair, up_use, down_use (of the link's time), status_words (a transfer), cycles
//   stages a list of: name (of a rate), mean_ns (of each stage, by the name of its end: stages.hpp), per_bell and
//          per_fetch (transfers), down_bytes, up_bytes (what each direction carried; all: what it could have)
//   soak   (with --soak) what SoakResult has, and cpu_s
// The exit status is 1 if a byte or an answer was wrong. Missed targets are only recorded in the file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "base/command_line.hpp"
#include "sim/card/rate.hpp"
#include "sim/card/soak.hpp"
#include "sim/json_output.hpp"

namespace {

using namespace wherry::sim::card;
using wherry::dma::Bell;
using wherry::dma::Direction;
using Json = nlohmann::json;

struct Named {
  std::string name;
  RateRun run;
};

/// Where the time of one row of rates went.
Json stages_of(const StageReport& found) {
  Json times = Json::object();
  for (std::size_t i = 1; i < kStages; ++i) times[std::string(to_string(static_cast<Stage>(i)))] = found.mean_ns[i];
  const auto use = [](const LinkUse& of) {
    return Json{
        {"all", of.all},     {"payload", of.payload},   {"headers", of.headers}, {"descriptors", of.descriptors},
        {"bells", of.bells}, {"requests", of.requests}, {"status", of.status},   {"others", of.others},
        {"dllps", of.dllps}};
  };
  return {{"mean_ns", times},
          {"per_bell", found.per_bell},
          {"per_fetch", found.per_fetch},
          {"down_bytes", use(found.down)},
          {"up_bytes", use(found.up)}};
}

void print_stages(const StageReport& found) {
  double since = 0;
  for (std::size_t i = 1; i < kStages; ++i) {
    since += found.mean_ns[i];
    fmt::print("    {:16} {:8.0f} ns {:8.0f}\n", to_string(static_cast<Stage>(i)), found.mean_ns[i], since);
  }
  const auto use = [](const char* name, const LinkUse& of) {
    const auto part = [&](std::uint64_t bytes) {
      return 100 * static_cast<double>(bytes) / static_cast<double>(of.all);
    };
    fmt::print(
        "    {:5} payload {:.2f} headers {:.2f} descriptors {:.2f} doorbells {:.2f} requests {:.2f} status {:.2f} "
        "others {:.2f} DLLPs {:.2f} idle {:.2f} %\n",
        name, part(of.payload), part(of.headers), part(of.descriptors), part(of.bells), part(of.requests),
        part(of.status), part(of.others), part(of.dllps), 100 - part(of.used()));
  };
  use("down", found.down);
  use("up", found.up);
  fmt::print("    {:.2f} transfers a doorbell, {:.2f} a read of descriptors\n", found.per_bell, found.per_fetch);
}

constexpr unsigned kPlenty = 480, kBatch = 16;

RateRun run_of(Direction direction, std::uint32_t bytes, unsigned depth, std::uint32_t transfers) {
  return {
      .direction = direction, .bytes = bytes, .depth = depth, .batch = depth > 64 ? kBatch : 1, .transfers = transfers};
}

/// The runs from which the bars are computed.
std::vector<Named> bar_runs() {
  std::vector<Named> runs;
  for (const Direction direction : {Direction::kToCard, Direction::kToHost}) {
    const std::string way = direction == Direction::kToCard ? "h2c" : "c2h";
    runs.push_back({way + "_4k_depth16", run_of(direction, 4096, 16, 1200)});
    runs.back().run.stages = true;
    runs.push_back({way + "_512", run_of(direction, 512, kPlenty, 6000)});
    runs.push_back({way + "_64", run_of(direction, 64, kPlenty, 12'000)});
    Named four{way + "_4k_4channels", run_of(direction, 4096, 16, 400)};
    four.run.channels = 4;
    runs.push_back(four);
    Named far{way + "_4k_rtt2us", run_of(direction, 4096, 32, 1200)};
    far.run.rtt_ns = 2000;
    far.run.stages = true;
    runs.push_back(far);
    Named alone{way + "_4k_depth1", run_of(direction, 4096, 1, 60)};
    alone.run.stages = true;
    runs.push_back(alone);
    alone.name += "_doorbell";
    alone.run.bell = Bell::kDescriptor;
    runs.push_back(alone);
    alone.name = way + "_4k_depth1_interrupt";
    alone.run.bell = Bell::kTail;
    alone.run.by_interrupt = true;
    runs.push_back(alone);
  }
  return runs;
}

/// The others: the curves.
std::vector<Named> more_runs() {
  std::vector<Named> runs;
  for (const Direction direction : {Direction::kToCard, Direction::kToHost}) {
    const std::string way = direction == Direction::kToCard ? "h2c" : "c2h";
    // Every doorbell at once, untuned; or with one of the two measures.
    for (const auto& [name, in_time, tuned] :
         {std::tuple{"plain", false, false}, {"in_time", true, false}, {"tuned", false, true}}) {
      Named without{fmt::format("{}_4k_depth16_{}", way, name), run_of(direction, 4096, 16, 1200)};
      without.run.in_time = in_time;
      without.run.tuned = tuned;
      without.run.stages = true;
      runs.push_back(without);
    }
    for (const unsigned depth : {2U, 4U, 8U, 32U})
      runs.push_back({fmt::format("{}_4k_depth{}", way, depth), run_of(direction, 4096, depth, 50 * depth + 60)});
    for (const std::uint32_t bytes : {128U, 256U, 1024U, 2048U})
      runs.push_back({fmt::format("{}_{}", way, bytes), run_of(direction, bytes, kPlenty, 4000)});
    for (const std::uint32_t bytes : {16384U, 65536U, 262144U, 1U << 20})
      runs.push_back({fmt::format("{}_{}_depth1", way, bytes), run_of(direction, bytes, 1, 12)});
    Named ddr{way + "_4k_depth16_ddr4", run_of(direction, 4096, 16, 1200)};
    ddr.run.memory = MemoryKind::kDdr4;
    runs.push_back(ddr);
    for (const auto& [host, card] : {std::pair{1U, 0U}, {0U, 4U}, {3U, 62U}}) {
      Named odd{fmt::format("{}_4k_off_{}_{}", way, host, card), run_of(direction, 4096, 16, 800)};
      odd.run.host_off = host;
      odd.run.card_off = card;
      runs.push_back(odd);
    }
  }
  return runs;
}

Json bar(double value, double target, bool at_least, const char* unit) {
  return {{"value", value},
          {"target", target},
          {"at_least", at_least},
          {"pass", at_least ? value >= target : value <= target},
          {"unit", unit}};
}

class Bench {
 public:
  bool wrong = false;
  Json document{{"schema", "wherry.dma_card_bench/1"},
                {"simulated", true},
                {"rates", Json::array()},
                {"stages", Json::array()},
                {"bars", Json::object()}};

  bool print = false;  ///< the stages

  std::uint64_t seed = 1;  ///< of the rates

  void rates(std::vector<Named> runs) {
    for (Named& one : runs) {
      one.run.seed = seed;
      const RateResult found = measure(one.run);
      by_name_[one.name] = found;
      const bool to_card = one.run.direction == Direction::kToCard;
      if (!found.error.empty()) {
        wrong = true;
        fmt::print(stderr, "{}: {}\n", one.name, found.error);
      }
      fmt::print(
          "{:24} {:8.3f} GB/s {:8.2f} M/s {:6.2f} % of {:6.2f} GB/s {:6.2f} % of {:6.2f} with DLLPs {:8.3f} us\n",
          one.name, found.gbytes, found.millions, 100 * found.share, found.bound_gbytes, 100 * found.share_with_dllps,
          found.bound_with_dllps_gbytes, found.latency_us);
      if (found.stages) {
        document["stages"].push_back(stages_of(*found.stages));
        document["stages"].back()["name"] = one.name;
        if (print) print_stages(*found.stages);
      }
      std::fflush(stdout);
      document["rates"].push_back({{"name", one.name},
                                   {"way", to_card ? "h2c" : "c2h"},
                                   {"bytes", one.run.bytes},
                                   {"depth", one.run.depth},
                                   {"channels", one.run.channels},
                                   {"bell", one.run.bell == Bell::kTail ? "tail" : "descriptor"},
                                   {"rtt_ns", one.run.rtt_ns},
                                   {"gbytes_per_s", found.gbytes},
                                   {"millions_per_s", found.millions},
                                   {"bound_gbytes_per_s", found.bound_gbytes},
                                   {"share", found.share},
                                   {"bound_with_dllps_gbytes_per_s", found.bound_with_dllps_gbytes},
                                   {"share_with_dllps", found.share_with_dllps},
                                   {"latency_us", found.latency_us},
                                   {"unfair", found.unfair},
                                   {"up_use", found.up_use},
                                   {"down_use", found.down_use},
                                   {"status_words", found.status_words},
                                   {"cycles", found.cycles}});
    }
  }

  void bars() {
    Json& bars = document["bars"];
    const auto of = [&](const char* name) -> const RateResult& { return by_name_.at(name); };
    const auto share = [&](const char* name, double target, const char* run) {
      bars[name] = bar(of(run).share, target, true, "share of the TLP bound");
      bars[name]["bound"] = of(run).bound_gbytes;
      bars[name]["share_with_dllps"] = of(run).share_with_dllps;
    };
    share("dma_h2c_4k_depth16", 0.98, "h2c_4k_depth16");
    share("dma_c2h_4k_depth16", 0.98, "c2h_4k_depth16");
    share("dma_h2c_512b", 0.90, "h2c_512");
    share("dma_c2h_512b", 0.90, "c2h_512");
    share("dma_h2c_4k_rtt2us", 0.98, "h2c_4k_rtt2us");
    share("dma_c2h_4k_rtt2us", 0.98, "c2h_4k_rtt2us");
    bars["dma_64b_mps"] = bar(of("h2c_64").millions, 100, true, "million transfers/s");
    bars["dma_64b_mps"]["bound"] = of("h2c_64").bound_gbytes * 1e3 / 64;
    bars["dma_4k_depth1_us"] = bar(of("h2c_4k_depth1").latency_us, 2.9, false, "us");
    bars["dma_4k_depth1_doorbell_us"] = bar(of("h2c_4k_depth1_doorbell").latency_us, 2.0, false, "us");
    bars["dma_half_rate_bytes"] = bar(half_rate_bytes({.direction = Direction::kToCard}), 40 * 1024, false, "bytes");
    bars["dma_channels_unfair"] =
        bar(std::max(of("h2c_4k_4channels").unfair, of("c2h_4k_4channels").unfair), 0.02, false, "share");
    for (const auto& [name, one] : bars.items())
      fmt::print("{:28} {:12.4g} {} {:g} {}: {}\n", name, one["value"].get<double>(),
                 one["at_least"].get<bool>() ? ">=" : "<=", one["target"].get<double>(), one["unit"].get<std::string>(),
                 one["pass"].get<bool>() ? "met" : "missed");
  }

  void run_soak(const SoakOptions& options) {
    const std::clock_t begin = std::clock();
    const SoakResult found = soak(options);
    const double cpu = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    if (!found.error.empty()) {
      wrong = true;
      fmt::print(stderr, "soak: {}\n", found.error);
    }
    document["soak"] = {{"worlds", found.worlds},
                        {"transfers", found.transfers},
                        {"bytes", found.bytes},
                        {"good", found.good},
                        {"good_bytes", found.good_bytes},
                        {"failed", found.failed},
                        {"voided", found.voided},
                        {"struck", found.struck},
                        {"resets", found.resets},
                        {"recoveries", found.recoveries},
                        {"masters_off", found.masters_off},
                        {"engine_timeouts", found.engine_timeouts},
                        {"unexpected", found.unexpected},
                        {"holes", found.holes},
                        {"cycles", found.cycles},
                        {"error", found.error},
                        {"cpu_s", cpu}};
    fmt::print("soak: {}\n", document["soak"].dump());
  }

 private:
  std::map<std::string, RateResult> by_name_;
};

}  // namespace

int main(int argc, char** argv) {
  Bench bench;
  CLI::App app("Rates of the DMA card through its driver and simulated PCIe, and its soak");
  std::string json;
  SoakOptions soak_options{.bytes = 0};
  bool quick = false, no_rates = false;
  std::vector<std::string> only;
  app.add_option("--json", json, "write what was found there");
  app.add_flag("--quick", quick, "only the runs that bars are made of");
  app.add_flag("--stages", bench.print, "print where the time goes, too");
  app.add_option("--rate-seed", bench.seed, "of the rates: when the host's memory answers");
  app.add_option("--only", only, "rates of these names, without bars");
  app.add_flag("--no-rates", no_rates, "only the soak");
  app.add_option("--soak", soak_options.bytes, "random transfers of so many bytes together, with every fault");
  app.add_option("--seed", soak_options.seed, "of the soak's first world");
  app.add_flag("--forgotten", soak_options.forgotten, "the soak: resets that leave reads without an answer, too");
  app.add_option("--event-in", soak_options.event_in,
                 "the soak: a reset, bus mastering off or a stopped ring in one round of so many")
      ->check(CLI::PositiveNumber);
  wherry::parse_command_line(app, argc, argv);
  if (!only.empty()) {
    std::vector<Named> runs = bar_runs();
    std::ranges::move(more_runs(), std::back_inserter(runs));
    std::erase_if(runs, [&](const Named& one) { return std::ranges::find(only, one.name) == only.end(); });
    bench.rates(runs);
  } else if (!no_rates) {
    bench.rates(bar_runs());
    bench.bars();
    if (!quick) bench.rates(more_runs());
  }
  if (soak_options.bytes != 0) bench.run_soak(soak_options);
  if (!json.empty() && !wherry::sim::write_document(bench.document, json, "dma_card_bench")) return 1;
  return bench.wrong ? 1 : 0;
}
