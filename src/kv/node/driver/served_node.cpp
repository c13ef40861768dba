// SPDX-License-Identifier: Apache-2.0
#include "kv/node/driver/served_node.hpp"

#include <fmt/core.h>

#include "base/try.hpp"
#include "kv/control/allowed.hpp"

namespace wherry::kv {

wherry::Status load_cluster(ServedNode& node, const std::string& path, const std::vector<std::string>& at) {
  WHERRY_ASSIGN(node.cluster, load_cluster_file(path));
  std::vector<std::string> keepers = at;
  if (keepers.empty() && node.cluster.mode != ClusterMode::fixed) keepers = node.cluster.keepers;
  node.keepers.clear();
  for (const std::string& text : keepers) {
    WHERRY_ASSIGN(auto keeper, parse_host_port(text));
    node.keepers.push_back(std::move(keeper));
  }
  return {};
}

wherry::Status check_number(const ServedNode& node) {
  if (node.number < kMaxNodes && node.cluster.nodes[node.number].configured) return {};
  return {StatusCode::kInvalidArgument, fmt::format("cluster {} has no node {}", node.cluster.name, node.number)};
}

DriverOptions driver_options(const ServedNode& node) {
  DriverOptions options{.cluster = node.cluster.name,
                        .node = node.number,
                        .bucket_bits = node.cluster.bucket_bits,
                        .lanes = node.cluster.lanes,
                        .retry_cycles = node.cluster.retry_cycles,
                        .accept = node.accept || node.cluster.policy == AckPolicy::accept};
  for (std::size_t i = 0; i < kMaxNodes; ++i)
    if (node.cluster.nodes[i].configured) options.nodes[i] = node.cluster.nodes[i].endpoint;
  options.sources = allowed_sources(node.cluster, local_subnets()).all();
  options.silence = std::uint64_t{node.cluster.ping_ms} * node.cluster.misses * kMillisecond;
  options.keeper_silence = keeper_silence(node.cluster);
  return options;
}

}  // namespace wherry::kv
