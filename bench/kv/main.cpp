// SPDX-License-Identifier: Apache-2.0
// kv_load: loads a kv cluster and prints what clients saw, as one JSON object. `wherry kv bench` makes a table of it.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "kv/load.hpp"

namespace {

using namespace wherry::kv;
using namespace wherry::kv::bench;
using Json = nlohmann::json;

int fail(const wherry::Status& status) {
  fmt::print(stderr, "kv_load: {}\n", status.message());
  return status.code() == wherry::StatusCode::kInvalidArgument ? 2 : 1;
}

double microseconds(std::uint64_t ns) { return static_cast<double>(ns) / 1000; }

Json of_verb(const VerbResult& verb, double seconds) {
  Json outcomes = Json::object();
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < kOutcomes; ++i) {
    all += verb.outcomes[i];
    if (verb.outcomes[i] != 0) outcomes[std::string(to_string(static_cast<Outcome>(i)))] = verb.outcomes[i];
  }
  const Latencies& l = verb.latencies;
  return {{"count", all},
          {"per_second", static_cast<double>(all) / seconds},
          {"mean_us", l.mean() / 1000},
          {"p50_us", microseconds(l.percentile(0.5))},
          {"p99_us", microseconds(l.percentile(0.99))},
          {"p999_us", microseconds(l.percentile(0.999))},
          {"max_us", microseconds(l.max())},
          {"outcomes", outcomes}};
}

Json to_json(const LoadResult& result) {
  Json verbs = Json::object();
  std::uint64_t ok = 0;
  for (std::size_t i = 0; i < kVerbs; ++i) {
    Json verb = of_verb(result.verbs[i], result.seconds);
    ok += result.verbs[i].latencies.count();
    if (verb["count"] != 0) verbs[std::string(kVerbNames[i])] = std::move(verb);
  }
  const ClientStatistics& s = result.statistics;
  return {{"seconds", result.seconds},
          {"ok_per_second", static_cast<double>(ok) / result.seconds},
          {"operations", verbs},
          {"client",
           {{"sent", s.sent},
            {"timeouts", s.timeouts},
            {"redirects", s.redirects},
            {"pauses", s.pauses},
            {"ignored", s.ignored},
            {"unknown", s.unknown}}}};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"kv_load: reads and writes keys of a kv cluster as fast as it goes; prints JSON", "kv_load"};
  LoadOptions load;
  std::uint64_t first_lane = 0;
  double timeout = 5;
  bool spin = false, no_fill = false;
  app.add_option("--node", load.client.nodes, "host:port, by number; repeated")->required();
  app.add_option("--clients", load.clients, "threads, each with a client")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  app.add_option("--depth", load.depth, "operations in flight of each")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  app.add_option("--seconds", load.seconds)->capture_default_str()->check(CLI::Range(0.01, 3600.0));
  app.add_option("--reads", load.mix[0], "share")->capture_default_str()->check(CLI::Range(0, 1'000'000));
  app.add_option("--writes", load.mix[1], "share")->capture_default_str()->check(CLI::Range(0, 1'000'000));
  app.add_option("--conditional", load.mix[2], "share")->capture_default_str()->check(CLI::Range(0, 1'000'000));
  app.add_option("--value-bytes", load.value_bytes)->capture_default_str()->check(CLI::Range(0, 1024));
  app.add_option("--keys", load.keys)->capture_default_str()->check(CLI::Range(1, 100'000'000));
  app.add_option("--zipf", load.zipf, "exponent; 0: uniform")->capture_default_str()->check(CLI::Range(0.0, 10.0));
  app.add_option("--first-lane", first_lane)->capture_default_str()->check(CLI::Range(0, 65535));
  app.add_option("--seed", load.seed)->capture_default_str();
  app.add_option("--timeout", timeout, "seconds, of an operation")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 3600.0));
  app.add_option("--read-from", load.client.reads, "nearest, round_robin or leader")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, ReadFrom>{
              {"nearest", ReadFrom::kNearest}, {"round_robin", ReadFrom::kRoundRobin}, {"leader", ReadFrom::kLeader}},
          CLI::ignore_case));
  app.add_option("--xdp", load.client.xdp, "the client on AF_XDP there: eth0, or eth0:3 for its queue 3");
  app.add_flag("--spin", spin, "clients never sleep");
  app.add_flag("--no-fill", no_fill, "do not write every key first");
  CLI11_PARSE(app, argc, argv);
  if (load.mix[0] + load.mix[1] + load.mix[2] == 0)
    return fail({wherry::StatusCode::kInvalidArgument, "--reads, --writes, --conditional: one must be above 0"});
  if (first_lane + std::uint64_t{load.clients} * load.depth > 65536)
    return fail({wherry::StatusCode::kInvalidArgument, "--clients times --depth lanes: there are 65536"});
  if (!load.client.xdp.empty() && load.clients > 1)
    return fail({wherry::StatusCode::kInvalidArgument, "--xdp: an interface's queue is for one client: --clients 1"});
  // A node that is not there is named as "-": an empty word would not survive the command line.
  for (std::string& node : load.client.nodes)
    if (node == "-") node.clear();
  load.client.first_lane = static_cast<std::uint16_t>(first_lane);
  load.client.deadline = std::chrono::nanoseconds(static_cast<std::int64_t>(timeout * 1e9));
  load.client.waiting = spin ? Waiting::kSpin : Waiting::kBlock;
  if (!no_fill)
    if (auto filled = fill(load); !filled) return fail(filled);
  const auto result = bench::load(load);
  if (!result) return fail(result.status());
  fmt::print("{}\n", to_json(*result).dump());
  return 0;
}
