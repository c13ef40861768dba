// SPDX-License-Identifier: Apache-2.0
// kv_peer_load: loads Redis or etcd as kv_load loads ours, or reads a node of ours, and prints the same JSON. Part of
// `wherry bench kv`.
#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "base/command_line.hpp"
#include "kv/peers/peer.hpp"
#include "kv/verb_json.hpp"

namespace {

using namespace wherry::kv::bench;

int fail(const wherry::Status& status) {
  fmt::print(stderr, "kv_peer_load: {}\n", status.message());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"kv_peer_load: reads or writes keys of Redis or etcd as fast as it goes; prints JSON", "kv_peer_load"};
  PeerLoad options;
  std::string kind, at;
  bool no_fill = false;
  app.add_option("peer", kind, "redis, etcd, or wherry (reads)")
      ->required()
      ->check(CLI::IsMember({"redis", "etcd", "wherry"}));
  app.add_option("--at", at, "host:port")->required();
  app.add_option("--verb", options.verb, "read or write; a write ends when a follower has it")
      ->transform(CLI::CheckedTransformer(std::map<std::string, Verb>{{"read", Verb::read}, {"write", Verb::write}}));
  app.add_option("--depth", options.depth, "in flight; writes of Redis in groups of so many, with one WAIT")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  app.add_option("--idle", options.idle, "while it waits: spin, yield or sleep")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, Idle>{{"spin", Idle::spin}, {"yield", Idle::yield}, {"sleep", Idle::sleep}}));
  app.add_option("--seconds", options.seconds)->capture_default_str()->check(CLI::Range(0.01, 3600.0));
  app.add_option("--warm-up", options.warm_up)->capture_default_str()->check(CLI::Range(0.0, 3600.0));
  app.add_option("--value-bytes", options.value_bytes)->capture_default_str()->check(CLI::Range(0, 1024));
  app.add_option("--keys", options.keys)->capture_default_str()->check(CLI::Range(1, 100'000'000));
  app.add_option("--seed", options.seed)->capture_default_str();
  app.add_flag("--no-fill", no_fill, "do not write every key first");
  wherry::parse_command_line(app, argc, argv);
  if (kind == "etcd" && options.depth > kEtcdInFlight)
    return fail({wherry::StatusCode::kInvalidArgument, fmt::format("--depth: at most {} with etcd", kEtcdInFlight)});
  auto peer = (kind == "redis"  ? connect_redis
               : kind == "etcd" ? connect_etcd
                                : connect_wherry)(at, options.value_bytes);
  if (!peer) return fail(peer.status());
  if (!no_fill && kind != "wherry")
    if (auto filled = fill(**peer, options); !filled) return fail(filled);
  std::array<VerbResult, kVerbs> verbs;
  auto result = load(**peer, options);
  if (!result) return fail(result.status());
  verbs[static_cast<std::size_t>(options.verb)] = *result;
  fmt::print("{}\n", to_json(verbs, options.seconds).dump());
  return 0;
}
