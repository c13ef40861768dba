// SPDX-License-Identifier: Apache-2.0
// A whole cluster in virtual time: nodes, their drivers, a keeper, clients and their workload, on a bad network. One
// seed determines everything. The history is what the clients saw. trouble.hpp adds other faults.
#pragma once

#include <memory>
#include <vector>

#include "kv/sim/keeper_seat.hpp"
#include "kv/sim/lane_seat.hpp"
#include "kv/sim/software_machine.hpp"
#include "kv/sim/store_client.hpp"

namespace wherry::kv::sim {

/// Who assigns the clients' lanes.
enum class LanesOf : std::uint8_t {
  own,      ///< static ones, told apart by the configuration
  granted,  ///< by the keeper, as clients with default options have them
  shared    ///< static ones, and two clients each have the same, as nobody should
};

/// Which nodes get the faults of ClusterOptions::node_faults.
enum class FaultIn : std::uint8_t { all, cores, software };

struct ClusterOptions {
  std::uint32_t nodes = 3;
  std::uint32_t clients = 4;
  LanesOf lanes = LanesOf::own;
  WorkloadOptions workload{.operations = 250};
  /// One frame in a hundred is lost, one arrives twice, and one is late, perhaps so late that a new epoch has begun.
  Link link{.loss = 10'000, .duplicate = 10'000, .late = 10'000, .lateness = 200'000};
  Cycles ping_interval = 20'000;  ///< 80 us; a node that was silent for `misses` of them is removed
  std::uint32_t misses = 3;
  Cycles silence = 60'000;  ///< a member that does not answer a leader for so long is removed, or the leader
  Cycles lease = 60'000;
  Cycles control_latency = 1000;
  std::uint32_t drift = 1000;  ///< a node's clock and the keeper's, in parts per million: up to 0.1 %
  ClientCore::Options client{.deadline = 2'000'000,
                             .first_timeout = 5000,
                             .timeout_cap = 100'000,
                             .lane_grace = 20'000,
                             .first_pause = 500,
                             .pause_cap = 20'000,
                             .probe_every = 1'000'000,
                             .reads = ReadFrom::kRoundRobin};
  std::uint32_t impatience = 20'000;  ///< operations that are given up early, in parts per million
  DriverOptions driver{.cluster = "sim", .retry_cycles = 5000, .busy_interval = 2000, .idle_interval = 20'000};
  std::uint32_t hardware_nodes = 0;  ///< the first so many are made by `hardware`
  MachineFactory hardware;
  /// The table's state before the cluster's first epoch: MachineOptions::versions.
  std::optional<Versions> versions;
  NodeFaults node_faults{};  ///< breaches of the protocol that the judge must find
  FaultIn fault_in = FaultIn::all;
  KeeperFault keeper_fault = KeeperFault::none;
};

/// Counts of events, summed over all lives of all nodes. The counts show whether a history contains enough events.
struct ClusterCounts {
  KeeperSeat::Counts keeper;
  std::uint64_t deaths = 0;
  std::uint64_t retries = 0;      ///< requests that clients sent again, as nobody answered
  std::uint64_t redirects = 0;    ///< that they sent elsewhere
  std::uint64_t rolled_back = 0;  ///< writes that the end of an epoch undid, in software nodes
  std::uint64_t completed = 0;    ///< leftovers that a leader completed, likewise
  std::uint64_t lanes_taken = 0;  ///< lanes that clients found in another one's use
  std::uint64_t refreshed = 0;    ///< locations whose version lagged, likewise
};

class Cluster final {
 public:
  static constexpr std::uint32_t kLanesEach = 4;
  static constexpr unsigned kLaneBits = 6;
  static constexpr std::uint32_t kStaticLanes = 16;

  Cluster(std::uint64_t seed, const ClusterOptions& options);
  Cluster(const Cluster&) = delete;  // the network has its address
  Cluster& operator=(const Cluster&) = delete;
  ~Cluster() = default;

  void start();

  [[nodiscard]] const ClusterOptions& options() const noexcept { return options_; }
  [[nodiscard]] Network& network() noexcept { return network_; }
  [[nodiscard]] KeeperSeat& keeper() noexcept { return keeper_; }
  [[nodiscard]] Workload& workload() noexcept { return workload_; }
  [[nodiscard]] StoreClient& client(std::uint32_t index) { return *clients_[index]; }
  /// The client that has the lane, or the first client if no client has it any more.
  [[nodiscard]] StoreClient& client_of_lane(std::uint16_t lane);
  [[nodiscard]] static Endpoint endpoint_of(std::uint32_t index);
  /// A node's port has the same number as the node.
  [[nodiscard]] static Port port_of(std::uint32_t node) { return static_cast<Port>(node); }
  /// The node's machine; null while it is dead.
  [[nodiscard]] const Machine* machine(std::uint32_t node) const { return machines_[node].get(); }

  void start_node(std::uint32_t node);
  /// Kills a node. If its system lives, it closes the node's connection; otherwise the connection stays silent.
  void kill_node(std::uint32_t node, bool keeper_notices);
  /// True if all nodes serve in an epoch that all have entered.
  [[nodiscard]] bool whole() const;
  /// True if whole(), and no software node has a write in flight or left over.
  [[nodiscard]] bool at_rest() const;
  /// Compares the software nodes of a cluster at rest. In each, every key must be at one location, in one of its
  /// buckets, and all nodes must be equal. An error describes the difference.
  [[nodiscard]] wherry::Status compare_tables() const;
  /// The number of keys in the first software node that are not in their first bucket.
  [[nodiscard]] std::uint64_t keys_elsewhere() const;
  /// The key's leader according to the keeper.
  [[nodiscard]] std::uint32_t leader_of(std::uint64_t key) const;

  [[nodiscard]] ClusterCounts counts() const;

 private:
  [[nodiscard]] KeeperOptions keeper_options() const;
  [[nodiscard]] std::unique_ptr<Machine> make_machine(std::uint32_t node);
  [[nodiscard]] bool breaks_rules(bool core) const noexcept;
  void count_life(const Machine& machine, ClusterCounts& counts) const;

  ClusterOptions options_;
  Network network_;
  Workload workload_;
  std::vector<std::unique_ptr<Machine>> machines_;
  std::vector<bool> attached_;
  KeeperSeat keeper_;
  std::vector<std::unique_ptr<StoreClient>> clients_;
  std::vector<std::unique_ptr<LaneSeat>> lane_seats_;  ///< by client, if lanes are granted
  ClusterCounts ended_;                                ///< of lives that are over
};

}  // namespace wherry::kv::sim
