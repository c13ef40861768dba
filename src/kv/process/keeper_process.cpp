// SPDX-License-Identifier: Apache-2.0
#include "kv/process/keeper_process.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/patiently.hpp"
#include "base/try.hpp"
#include "kv/keeper/etcd.hpp"
#include "kv/keeper/keeper_server.hpp"

namespace wherry::kv {
namespace {

using namespace std::chrono_literals;

/// A node tries the keepers in turn. Each keeper that hangs costs it the time of keeper_silence().
Cycles find_time(const ClusterFile& cluster) {
  const std::size_t others = cluster.keepers.size() - std::min<std::size_t>(1, cluster.keepers.size());
  return others == 0 ? 0 : others * (keeper_silence(cluster) + 250 * kMillisecond);
}

KeeperOptions keeper_options(const ClusterFile& cluster) {
  KeeperOptions options{.cluster = cluster.name,
                        .nodes = {},
                        .bucket_bits = cluster.bucket_bits,
                        .lanes = cluster.lanes,
                        .policy = cluster.policy,
                        .ping_interval = cluster.ping_ms * kMillisecond,
                        .misses = cluster.misses,
                        .lease = cluster.lease_ms * kMillisecond,
                        .find_time = find_time(cluster),
                        .static_lanes = cluster.static_lanes,
                        .lane_ttl = cluster.lane_ttl_ms * kMillisecond};
  for (std::size_t i = 0; i < kMaxNodes; ++i) {
    const ClusterNode& node = cluster.nodes[i];
    options.nodes[i] = {.configured = node.configured, .name = node.name, .endpoint = node.endpoint};
  }
  return options;
}

Result<std::unique_ptr<KeeperServer>> start_server(const KeeperProcessOptions& options,
                                                   std::unique_ptr<ConfigurationStore> store) {
  // A predecessor may still listen at this address, or another process may still have connections from it.
  auto listener = patiently([&] { return listen_tcp(options.listen); });
  WHERRY_TRY(listener);
  return KeeperServer::start(*std::move(listener), keeper_options(options.cluster), std::move(store));
}

wherry::Status serve_alone(const KeeperProcessOptions& options, const std::atomic<bool>& stop) {
  auto store = patiently([&] { return open_file_store(options.state_file); });
  WHERRY_TRY(store);
  WHERRY_ASSIGN(auto server, start_server(options, *std::move(store)));
  spdlog::info("kv keeper of cluster {} at {}", options.cluster.name, options.listen.to_string());
  while (!stop.load(std::memory_order_relaxed)) server->turn(100);
  return {};
}

/// Runs until the election ends or `stop` is set. This thread grants leases and sends no request to etcd.
wherry::Status serve_elected(const KeeperProcessOptions& options, EtcdElection& election,
                             const std::atomic<bool>& stop) {
  const std::int64_t term = election.elected();
  WHERRY_ASSIGN(auto server, start_server(options, election.store()));
  spdlog::info("kv keeper of cluster {} at {}: elected", options.cluster.name, options.listen.to_string());
  while (!stop.load(std::memory_order_relaxed) && election.elected() == term) {
    server->keeper().set_mandate(election.mandate_ns() / kCycleNs);
    server->turn(50);
    if (server->keeper().phase() != Keeper::Phase::deposed) continue;
    election.step_down();
    break;
  }
  spdlog::info("kv keeper of cluster {}: no longer elected", options.cluster.name);
  return {};
}

}  // namespace

wherry::Status run_keeper(const KeeperProcessOptions& options, const std::atomic<bool>& stop) {
  const ClusterFile& cluster = options.cluster;
  if (cluster.mode == ClusterMode::fixed)
    return {StatusCode::kInvalidArgument, "the cluster's mode is static: it has no keeper"};
  if (cluster.mode == ClusterMode::keeper) return serve_alone(options, stop);
  WHERRY_ASSIGN(auto election, EtcdElection::open({.urls = cluster.etcd,
                                                   .ca = cluster.etcd_ca,
                                                   .cert = cluster.etcd_cert,
                                                   .key = cluster.etcd_key,
                                                   .prefix = cluster.etcd_prefix,
                                                   .self = options.listen.to_string()}));
  std::atomic<bool> over{false};
  std::thread thread([&] { election->run(over); });
  wherry::Status status;
  while (status && !stop.load(std::memory_order_relaxed)) {
    if (election->elected() != 0) {
      status = serve_elected(options, *election, stop);
      // Unavailable: for example, etcd does not answer. Then the election either continues or ends.
      if (status.code() == StatusCode::kUnavailable) {
        spdlog::warn("kv keeper: {}", status.message());
        status = {};
      }
    }
    std::this_thread::sleep_for(20ms);
  }
  over = true;
  thread.join();
  return status;
}

}  // namespace wherry::kv
