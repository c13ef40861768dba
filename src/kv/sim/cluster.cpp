// SPDX-License-Identifier: Apache-2.0
#include "kv/sim/cluster.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "kv/node/table_testing.hpp"

namespace wherry::kv::sim {

Endpoint Cluster::endpoint_of(std::uint32_t index) {
  return {.mac = 0x020000000000U + index, .ip = 0x0a000000U + index, .port = static_cast<std::uint16_t>(kUdpPort)};
}

Cluster::Cluster(std::uint64_t seed, const ClusterOptions& options)
    : options_(options),
      network_(seed),
      workload_(network_, seed + 1, options.workload),
      machines_(options.nodes),
      attached_(options.nodes),
      keeper_(network_, keeper_options(), options.control_latency,
              [this](std::uint32_t node) { return node < machines_.size() ? machines_[node].get() : nullptr; }) {
  network_.set_links(options.link);
  for (std::uint32_t i = 0; i < options.nodes; ++i) start_node(i);
  ClientCore::Options client = options.client;
  client.lanes = kLanesEach;
  client.operations = 16;
  for (std::uint32_t i = 0; i < options.nodes; ++i) client.nodes[i] = endpoint_of(i);
  for (std::uint32_t i = 0; i < options.clients; ++i) {
    const std::uint32_t whose = options.lanes == LanesOf::shared ? i / 2 : i;
    client.first_lane = static_cast<std::uint16_t>(whose * kLanesEach);
    client.granted = options.lanes == LanesOf::granted;
    client.seed = seed + 2 + i;
    clients_.push_back(
        std::make_unique<StoreClient>(network_, endpoint_of(kMaxNodes + i), client, options.impatience, workload_));
    workload_.add_client(*clients_.back());
    if (options.lanes == LanesOf::granted)
      lane_seats_.push_back(std::make_unique<LaneSeat>(network_, keeper_, *clients_.back(), kLanesEach,
                                                       client.seed << 32, options.ping_interval,
                                                       keeper_options().lane_ttl));
  }
}

KeeperOptions Cluster::keeper_options() const {
  KeeperOptions keeper{.cluster = options_.driver.cluster,
                       .bucket_bits = options_.workload.bucket_bits,
                       .lanes = 1U << kLaneBits,
                       .ping_interval = options_.ping_interval,
                       .misses = options_.misses,
                       .lease = options_.lease,
                       .static_lanes = kStaticLanes,
                       .lane_ttl = 6 * options_.ping_interval,
                       .fault = options_.keeper_fault};
  for (std::uint32_t i = 0; i < options_.nodes; ++i)
    keeper.nodes[i] = {.configured = true, .name = std::to_string(i), .endpoint = endpoint_of(i)};
  return keeper;
}

void Cluster::start() {
  keeper_.start();
  for (const auto& client : clients_) client->start();
  for (const auto& seat : lane_seats_) seat->start();
  workload_.start();
}

bool Cluster::breaks_rules(bool core) const noexcept {
  return options_.fault_in == FaultIn::all || core == (options_.fault_in == FaultIn::cores);
}

std::unique_ptr<Machine> Cluster::make_machine(std::uint32_t node) {
  const bool core = node < options_.hardware_nodes;
  MachineOptions options{.lane_bits = kLaneBits, .driver = options_.driver};
  if (breaks_rules(core)) options.faults = options_.node_faults;
  options.driver.node = node;
  options.driver.bucket_bits = options_.workload.bucket_bits;
  options.driver.lanes = 1U << kLaneBits;
  options.driver.silence = options_.silence;
  options.driver.sources = {{.ip = endpoint_of(0).ip, .mask = ~255U}};  // all members and clients
  if (!attached_[node]) options.versions = options_.versions;           // who returns is empty
  options.seed = network_.random().next();
  options.drift = static_cast<std::int32_t>(network_.random().below(2 * options_.drift + 1)) -
                  static_cast<std::int32_t>(options_.drift);
  Machine::ToKeeperFunction to_keeper = [this, node](const ToKeeper& m) { keeper_.to_keeper(node, m); };
  if (core) return options_.hardware(network_, port_of(node), options, std::move(to_keeper));
  return std::make_unique<SoftwareMachine>(network_, port_of(node), options, std::move(to_keeper));
}

void Cluster::start_node(std::uint32_t node) {
  if (machines_[node] != nullptr) return;
  machines_[node] = make_machine(node);
  if (attached_[node])
    network_.revive(port_of(node), *machines_[node]);
  else
    network_.attach(endpoint_of(node), *machines_[node]);
  attached_[node] = true;
  machines_[node]->begin();
  keeper_.connect(node);
}

void Cluster::kill_node(std::uint32_t node, bool keeper_notices) {
  if (machines_[node] == nullptr) return;
  count_life(*machines_[node], ended_);
  ++ended_.deaths;
  network_.kill(port_of(node));
  machines_[node].reset();
  keeper_.disconnect(node, keeper_notices);
}

bool Cluster::whole() const {
  if (!keeper_.alive() || keeper_.keeper().phase() != Keeper::Phase::running) return false;
  const Configuration& now = keeper_.keeper().configuration();
  for (std::uint32_t node = 0; node < options_.nodes; ++node) {
    const Machine* const machine = machines_[node].get();
    if (!has(now.serving, node) || machine == nullptr || machine->driver().epoch() != now.epoch) return false;
  }
  return true;
}

bool Cluster::at_rest() const {
  return whole() && std::ranges::all_of(machines_, [](const std::unique_ptr<Machine>& machine) {
           return machine->node() == nullptr || machine->node()->at_rest();
         });
}

wherry::Status Cluster::compare_tables() const {
  const Table* first = nullptr;
  for (std::uint32_t node = 0; node < options_.nodes; ++node) {
    if (machines_[node] == nullptr || machines_[node]->node() == nullptr) continue;
    const Table& table = machines_[node]->node()->table();
    try {
      (void)testing::all_keys(table);
    } catch (const std::logic_error& error) {
      return {StatusCode::kInternal, "node " + std::to_string(node) + ": " + error.what()};
    }
    if (first == nullptr) first = &table;
    if (!testing::same_tables(*first, table))
      return {StatusCode::kInternal, "node " + std::to_string(node) + " has another table"};
  }
  return wherry::ok_status();
}

std::uint64_t Cluster::keys_elsewhere() const {
  for (const auto& machine : machines_) {
    if (machine == nullptr || machine->node() == nullptr) continue;
    std::uint64_t count = 0;
    for (const auto& [key, at] : testing::all_keys(machine->node()->table()))
      if (bucket_at(at) != bucket_of(hash_of(key), options_.workload.bucket_bits)) ++count;
    return count;
  }
  return 0;
}

std::uint32_t Cluster::leader_of(std::uint64_t key) const {
  return keeper_.keeper().configuration().leaders[slot_of(hash_of(key))];
}

StoreClient& Cluster::client_of_lane(std::uint16_t lane) {
  for (std::size_t i = 0; i < lane_seats_.size(); ++i)
    if (lane_seats_[i]->holds(lane)) return *clients_[i];
  const std::size_t range = lane / kLanesEach;
  const std::size_t i = options_.lanes == LanesOf::shared ? 2 * range : range;
  return *clients_[lane_seats_.empty() && i < clients_.size() ? i : 0];
}

void Cluster::count_life(const Machine& machine, ClusterCounts& counts) const {
  counts.rolled_back += machine.settled().rolled_back;
  counts.completed += machine.settled().completed;
  counts.refreshed += machine.settled().refreshed;
}

ClusterCounts Cluster::counts() const {
  ClusterCounts sum = ended_;
  sum.keeper = keeper_.counts();
  for (const auto& machine : machines_)
    if (machine != nullptr) count_life(*machine, sum);
  for (const auto& client : clients_) {
    const ClientStatistics statistics = client->statistics();
    sum.retries += statistics.timeouts;
    sum.redirects += statistics.redirects;
    sum.lanes_taken += statistics.lanes_taken;
  }
  return sum;
}

}  // namespace wherry::kv::sim
