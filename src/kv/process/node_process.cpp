// SPDX-License-Identifier: Apache-2.0
#include "kv/process/node_process.hpp"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>

#include "base/clock.hpp"
#include "base/cpu.hpp"
#include "base/log.hpp"
#include "kv/keeper/driver_client.hpp"
#include "kv/node/node.hpp"
#include "kv/process/receive.hpp"

namespace wherry::kv {
namespace {

constexpr std::uint64_t kDriverTurnNs = 100'000;  // the keeper's messages are some tens of milliseconds apart
constexpr std::uint64_t kSleepNs = 1'000'000;

unsigned lane_bits_for(std::uint32_t lanes) {
  unsigned bits = 0;
  while ((std::uint32_t{1} << bits) < lanes) ++bits;
  return bits;
}

}  // namespace

wherry::Status run_node(const NodeProcessOptions& options, const std::atomic<bool>& stop) {
  const ClusterFile& cluster = options.cluster;
  if (options.number >= kMaxNodes || !cluster.nodes[options.number].configured)
    return {StatusCode::kInvalidArgument, fmt::format("cluster {} has no node {}", cluster.name, options.number)};
  auto port = UdpPort::open(cluster.nodes[options.number].endpoint);
  if (!port) return port.status();

  Node node({.lane_bits = lane_bits_for(cluster.lanes)}, *port);
  node.set_now(now_ns() / kCycleNs);
  DriverClient driver(options.keepers,
                      {.cluster = cluster.name,
                       .node = options.number,
                       .bucket_bits = cluster.bucket_bits,
                       .lanes = cluster.lanes,
                       .retry_cycles = cluster.retry_cycles,
                       .accept = options.accept},
                      node);
  if (cluster.mode == ClusterMode::fixed)
    driver.driver().enter_static(static_configuration(cluster), now_ns() / kCycleNs);
  spdlog::info("kv node {} of cluster {} at UDP port {}{}", options.number, cluster.name, port->local().port,
               options.spin ? ", spinning" : "");

  std::uint64_t driver_due = 0, bad_lengths = 0;
  Cycles due = 0;
  while (!stop.load(std::memory_order_relaxed)) {
    const std::size_t count = receive_all(*port, node, [] { return now_ns() / kCycleNs; });
    std::uint64_t now = now_ns();
    for (; bad_lengths < port->counters().bad_length; ++bad_lengths) node.count_dropped(Node::Drop::kLength);
    if (count != 0 || now / kCycleNs >= due) due = node.tick(now / kCycleNs);
    port->flush();
    if (now >= driver_due) {
      driver.turn();
      due = node.tick(now / kCycleNs);  // registers may have been written
      port->flush();
      driver_due = now + kDriverTurnNs;
    }
    if (count != 0) continue;
    if (options.spin) {
      cpu_relax();
      continue;
    }
    pollfd ready{.fd = port->fd(), .events = POLLIN, .revents = 0};
    now = now_ns();
    const std::uint64_t until = std::min(due == Node::kNever ? now + kSleepNs : due * kCycleNs, now + kSleepNs);
    if (until > now) {
      const timespec timeout{.tv_sec = 0, .tv_nsec = static_cast<long>(until - now)};
      ppoll(&ready, 1, &timeout, nullptr);
    }
    driver_due = 0;  // after a sleep, a look at the keeper costs nothing that matters
  }
  spdlog::info("kv node {}: {} frames, {} dropped", options.number, node.counters().frames_kv, bad_lengths);
  return {};
}

}  // namespace wherry::kv
