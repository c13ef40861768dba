// SPDX-License-Identifier: Apache-2.0
#include "kv/process/keeper_process.hpp"

#include <chrono>
#include <thread>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "kv/keeper/etcd.hpp"
#include "kv/keeper/keeper_server.hpp"

namespace wherry::kv {
namespace {

using namespace std::chrono_literals;

constexpr Cycles cycles_of_ms(std::uint32_t ms) { return std::uint64_t{ms} * 1'000'000 / kCycleNs; }

KeeperOptions keeper_options(const ClusterFile& cluster) {
  KeeperOptions options{.cluster = cluster.name,
                        .nodes = {},
                        .bucket_bits = cluster.bucket_bits,
                        .lanes = cluster.lanes,
                        .ping_interval = cycles_of_ms(cluster.ping_ms),
                        .misses = cluster.misses,
                        .lease = cycles_of_ms(cluster.lease_ms),
                        .static_lanes = cluster.static_lanes,
                        .lane_ttl = cycles_of_ms(cluster.lane_ttl_ms)};
  for (std::size_t i = 0; i < kMaxNodes; ++i) {
    const ClusterNode& node = cluster.nodes[i];
    options.nodes[i] = {.configured = node.configured, .name = node.name, .endpoint = node.endpoint};
  }
  return options;
}

wherry::Status serve_alone(const KeeperProcessOptions& options, const std::atomic<bool>& stop) {
  auto store = open_file_store(options.state_file);
  if (!store) return store.status();
  auto server = KeeperServer::start(options.listen, keeper_options(options.cluster), *std::move(store));
  if (!server) return server.status();
  spdlog::info("kv keeper of cluster {} at {}", options.cluster.name, options.listen.to_string());
  while (!stop.load(std::memory_order_relaxed)) (*server)->turn(100);
  return {};
}

/// Elected until the election is over, or `stop`.
wherry::Status serve_elected(const KeeperProcessOptions& options, EtcdElection& election,
                             const std::atomic<bool>& stop) {
  auto server = KeeperServer::start(options.listen, keeper_options(options.cluster), election.store());
  if (!server) return server.status();
  spdlog::info("kv keeper of cluster {} at {}: elected", options.cluster.name, options.listen.to_string());
  std::uint64_t due = 0;
  while (!stop.load(std::memory_order_relaxed) && (*server)->keeper().phase() != Keeper::Phase::deposed) {
    if (now_ns() >= due) {
      const wherry::Status kept = election.keep_alive();
      if (kept.code() == StatusCode::kFailedPrecondition) break;
      if (!kept) spdlog::warn("kv keeper: {}", kept.message());
      due = now_ns() + 1'000'000'000;
    }
    (*server)->keeper().set_mandate(election.mandate_ns() / kCycleNs);
    (*server)->turn(50);
  }
  spdlog::info("kv keeper of cluster {}: no longer elected", options.cluster.name);
  return {};
}

}  // namespace

wherry::Status run_keeper(const KeeperProcessOptions& options, const std::atomic<bool>& stop) {
  if (options.cluster.mode == ClusterMode::fixed)
    return {StatusCode::kInvalidArgument, "the cluster's mode is static: it has no keeper"};
  if (options.cluster.mode == ClusterMode::keeper) return serve_alone(options, stop);
  auto election = EtcdElection::open(
      {.url = options.cluster.etcd, .prefix = options.cluster.etcd_prefix, .self = options.listen.to_string()});
  if (!election) return election.status();
  while (!stop.load(std::memory_order_relaxed)) {
    const wherry::Status won = (*election)->campaign();
    if (won) {
      if (wherry::Status served = serve_elected(options, **election, stop); !served) return served;
      continue;
    }
    if (!won.is_would_block()) spdlog::warn("kv keeper: {}", won.message());
    std::this_thread::sleep_for(300ms);
  }
  return (*election)->resign();
}

}  // namespace wherry::kv
