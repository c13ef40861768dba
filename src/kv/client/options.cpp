// SPDX-License-Identifier: Apache-2.0
#include "kv/client/options.hpp"

#include <fmt/core.h>
#include <netdb.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <random>

#include "base/try.hpp"
#include "kv/control/cluster_file.hpp"
#include "kv/generated/frame.hpp"
#include "kv/net/address.hpp"

namespace wherry::kv {
namespace {

using std::chrono::nanoseconds;

/// Resolves "host:port", or "host" with the protocol's port. IPv4.
Result<Endpoint> resolve(const std::string& text) {
  HostPort at{text, kUdpPort};
  if (text.find(':') != std::string::npos) {
    WHERRY_ASSIGN(at, parse_host_port(text));
  }
  if (at.port == 0) return invalid_option(fmt::format("node '{}': port 0", text));
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(at.host.c_str(), nullptr, &hints, &found);
  if (error != 0) return invalid_option(fmt::format("node '{}': no IPv4 address: {}", text, gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  const auto* address = reinterpret_cast<const sockaddr_in*>(found->ai_addr);
  return Endpoint{.ip = ntohl(address->sin_addr.s_addr), .port = at.port};
}

wherry::Status take_names(const ClientOptions& options, ClientPlan& plan) {
  if (options.nodes.size() > kMaxNodes)
    return invalid_option(fmt::format("nodes: {} given, at most {} make a cluster", options.nodes.size(), kMaxNodes));
  for (std::size_t n = 0; n < options.nodes.size(); ++n) {
    if (options.nodes[n].empty()) continue;
    WHERRY_ASSIGN(auto at, resolve(options.nodes[n]));
    if (std::ranges::find(plan.core.nodes, at) != plan.core.nodes.end())
      return invalid_option(fmt::format("nodes: '{}' is there twice", options.nodes[n]));
    plan.core.nodes[n] = at;
    plan.names_nodes = true;
  }
  return {};
}

wherry::Status take_file(const ClientOptions& options, ClientPlan& plan, std::vector<std::string>& keepers) {
  WHERRY_ASSIGN(const auto file, load_cluster_file(options.cluster));
  plan.cluster = file.name;
  if (keepers.empty()) keepers = file.keepers;
  if (!plan.names_nodes) {
    plan.origin = options.cluster;
    for (std::size_t n = 0; n < kMaxNodes; ++n)
      if (file.nodes[n].configured)
        plan.core.nodes[n] = {.ip = file.nodes[n].endpoint.ip, .port = file.nodes[n].endpoint.port};
    plan.names_nodes = true;
  }
  const std::uint64_t end = options.first_lane.value_or(0) + std::uint64_t{options.lanes};
  if (options.first_lane && options.lanes > 0 && end > file.static_lanes) {
    return invalid_option(
        fmt::format("first_lane: lanes {} to {}: of cluster '{}' those below {} are static ({}), and the keeper "
                    "grants the others",
                    *options.first_lane, end - 1, file.name, file.static_lanes, options.cluster));
  }
  if (!options.first_lane && options.lanes > 0 && file.mode == ClusterMode::fixed) {
    return invalid_option(
        fmt::format("cluster '{}' has no keeper to grant lanes (mode static): name static ones with "
                    "first_lane, which no other client uses, or say lanes = 0 to read only",
                    file.name));
  }
  return {};
}

wherry::Status check_numbers(const ClientOptions& options) {
  const std::uint64_t first = options.first_lane.value_or(0);
  if (first + options.lanes > kMaxLanes)
    return invalid_option(fmt::format("lanes {} to {}: the last one that a frame can name is {}", first,
                                      first + options.lanes - 1, kMaxLanes - 1));
  if (!std::has_single_bit(options.operations) || options.operations > 65536)
    return invalid_option(fmt::format("operations is {}: want a power of two up to 65536", options.operations));
  if (options.deadline <= nanoseconds(0) || options.first_timeout <= nanoseconds(0) || options.timeout_factor == 0)
    return invalid_option("deadline, first_timeout and timeout_factor must be above 0");
  return {};
}

}  // namespace

Result<ClientPlan> plan_client(const ClientOptions& options) {
  WHERRY_TRY(check_numbers(options));
  ClientPlan plan;
  WHERRY_TRY(take_names(options, plan));
  std::vector<std::string> keepers = options.keepers;
  if (!options.cluster.empty()) WHERRY_TRY(take_file(options, plan, keepers));
  const bool granted = options.lanes > 0 && !options.first_lane;
  if (!plan.names_nodes && (!granted || keepers.empty()))
    return invalid_option("nodes: none given; name the cluster file, the nodes, or the keeper, which knows them");
  if (granted && keepers.empty()) {
    return invalid_option(
        "lanes: no keeper grants them; name the cluster file or the keepers, or static lanes with first_lane, "
        "which no other client uses, or say lanes = 0 to read only");
  }
  for (const std::string& text : keepers) {
    if (!granted) break;
    WHERRY_ASSIGN(auto keeper, parse_host_port(text));
    plan.keepers.push_back(std::move(keeper));
  }
  plan.core.first_lane = options.first_lane.value_or(0);
  plan.core.lanes = options.lanes;
  plan.core.granted = granted;
  plan.core.operations = options.operations;
  plan.core.deadline = to_cycles(options.deadline);
  plan.core.first_timeout = to_cycles(options.first_timeout);
  plan.core.timeout_factor = options.timeout_factor;
  plan.core.timeout_cap = to_cycles(options.timeout_cap);
  plan.core.reads = options.reads;
  plan.core.seed =
      options.seed != 0 ? options.seed : std::uint64_t{std::random_device()()} << 32 | std::random_device()();
  return plan;
}

wherry::Status take_nodes(ClientPlan& plan, const std::array<Endpoint, kMaxNodes>& nodes) {
  const auto text = [](const Endpoint& at) { return at.port == 0 ? std::string("absent") : "at " + to_string(at); };
  for (std::size_t n = 0; n < kMaxNodes; ++n) {
    const Endpoint said{.ip = nodes[n].ip, .port = nodes[n].port};
    Endpoint& known = plan.core.nodes[n];
    if (!plan.origin.empty() && !(known == said))
      return invalid_option(
          fmt::format("node {} is {} in {}, and {} in the keeper's cluster file: give both the same file", n,
                      text(known), plan.origin, text(said)));
    if (!plan.names_nodes) known = said;
  }
  return {};
}

}  // namespace wherry::kv
