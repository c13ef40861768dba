// SPDX-License-Identifier: Apache-2.0
// kv_load: loads a kv cluster and prints the clients' results, as one JSON object. `wherry kv bench` makes a table of
// it.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/command_line.hpp"
#include "kv/generated/frame.hpp"
#include "kv/load.hpp"
#include "kv/verb_json.hpp"

namespace {

using namespace wherry::kv;
using namespace wherry::kv::bench;
using Json = nlohmann::json;

int fail(const wherry::Status& status) {
  fmt::print(stderr, "kv_load: {}\n", status.message());
  return status.code() == wherry::StatusCode::kInvalidArgument ? 2 : 1;
}

Json to_json(const LoadResult& result) {
  Json json = bench::to_json(result.verbs, result.seconds);
  const ClientStatistics& s = result.statistics;
  json["client"] = {{"sent", s.sent},     {"timeouts", s.timeouts}, {"redirects", s.redirects},
                    {"pauses", s.pauses}, {"ignored", s.ignored},   {"unknown", s.unknown}};
  return json;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"kv_load: reads and writes keys of a kv cluster as fast as it goes; prints JSON", "kv_load"};
  LoadOptions load;
  std::optional<std::uint64_t> first_lane;
  double timeout = 5;
  bool spin = false, yield = false, no_fill = false;
  app.add_option("--cluster", load.client.cluster, "cluster file");
  app.add_option("--node", load.client.nodes, "host:port, by number; repeated; instead of the cluster file");
  app.add_option("--clients", load.clients, "threads, each with a client")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  app.add_option("--depth", load.depth, "operations in flight of each")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  app.add_option("--seconds", load.seconds)->capture_default_str()->check(CLI::Range(0.01, 3600.0));
  app.add_option("--warm-up", load.warm_up)->capture_default_str()->check(CLI::Range(0.0, 3600.0));
  app.add_option("--reads", load.mix[0], "share")->capture_default_str()->check(CLI::Range(0, 1'000'000));
  app.add_option("--writes", load.mix[1], "share")->capture_default_str()->check(CLI::Range(0, 1'000'000));
  app.add_option("--conditional", load.mix[2], "share")->capture_default_str()->check(CLI::Range(0, 1'000'000));
  app.add_option("--value-bytes", load.value_bytes)->capture_default_str()->check(CLI::Range(0, 1024));
  app.add_option("--keys", load.keys)->capture_default_str()->check(CLI::Range(1, 100'000'000));
  app.add_option("--zipf", load.zipf, "exponent; 0: uniform")->capture_default_str()->check(CLI::Range(0.0, 10.0));
  app.add_option("--first-lane", first_lane, "static lanes from here; otherwise the keeper grants them")
      ->check(CLI::Range(0U, wherry::kv::kMaxLanes - 1));
  app.add_option("--seed", load.seed)->capture_default_str();
  app.add_option("--timeout", timeout, "seconds, of an operation")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 3600.0));
  app.add_option("--read-from", load.client.reads, "nearest, round_robin or leader")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, ReadFrom>{
              {"nearest", ReadFrom::kNearest}, {"round_robin", ReadFrom::kRoundRobin}, {"leader", ReadFrom::kLeader}},
          CLI::ignore_case));
  app.add_option("--xdp", load.client.xdp, "the client on AF_XDP there: eth0, or eth0:3 for its queue 3, or eth0,eth1");
  app.add_option("--led-by", load.led_by, "draw only keys that this node leads in mode static")
      ->check(CLI::Range(0, 7));
  app.add_flag("--spin", spin, "clients never sleep");
  app.add_flag("--yield", yield, "clients never sleep, and let others on their cores run once they have asked");
  app.add_flag("--no-fill", no_fill, "do not write every key first");
  wherry::parse_command_line(app, argc, argv);
  if (load.mix[0] + load.mix[1] + load.mix[2] == 0)
    return fail({wherry::StatusCode::kInvalidArgument, "--reads, --writes, --conditional: one must be above 0"});
  if (first_lane.value_or(0) + std::uint64_t{load.clients} * load.depth > wherry::kv::kMaxLanes)
    return fail({wherry::StatusCode::kInvalidArgument, "--clients times --depth lanes: there are 8192"});
  if (!load.client.xdp.empty() && load.clients > 1)
    return fail({wherry::StatusCode::kInvalidArgument, "--xdp: an interface's queue is for one client: --clients 1"});
  // A missing node is written as "-", because the command line loses an empty word.
  for (std::string& node : load.client.nodes)
    if (node == "-") node.clear();
  if (first_lane) load.client.first_lane = static_cast<std::uint16_t>(*first_lane);
  load.client.deadline = std::chrono::nanoseconds(static_cast<std::int64_t>(timeout * 1e9));
  load.client.waiting = yield ? Waiting::kYield : spin ? Waiting::kSpin : Waiting::kBlock;
  if (!no_fill)
    if (auto filled = fill(load); !filled) return fail(filled);
  const auto result = bench::load(load);
  if (!result) return fail(result.status());
  fmt::print("{}\n", to_json(*result).dump());
  return 0;
}
