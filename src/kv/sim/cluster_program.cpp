// SPDX-License-Identifier: Apache-2.0
#include "kv/sim/cluster_program.hpp"
#include "base/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/try.hpp"
#include "kv/sim/failover_testing.hpp"
#include "kv/sim/pcap.hpp"
#include "kv/sim/trouble.hpp"

namespace sim = wherry::kv::sim;
using wherry::kv::Cycles;
using wherry::kv::KeeperFault;
using wherry::kv::kMillisecond;
using wherry::kv::NodeFault;

namespace {

constexpr Cycles kLimit = 400'000'000;  ///< 1.6 s of virtual time: a cluster that is stuck ends here

/// Faults that a hardware core can have, too (CoreFaults).
constexpr std::array kFaultsOfCores{NodeFault::serve_pending_reads,  NodeFault::commit_before_all,
                                    NodeFault::forget_unsettled,     NodeFault::keep_lagging_versions,
                                    NodeFault::ignore_other_flights, NodeFault::ignore_other_versions};

constexpr std::array<std::string_view, 7> kKeeperFaults{
    "none",         "ignore_leases", "serve_incomplete", "leader_is_member", "overlook_restart",
    "repeat_epoch", "forget_leases"};

struct Arguments {
  std::uint64_t seed = 1;
  std::uint64_t count = 1;
  std::uint32_t nodes = 0;
  int rtl = 0;
  std::string fault = "none";
  std::string fault_in = "all";
  std::string trouble;
  std::string folder = ".";
  std::string pcap;
  bool old_versions = false;
  bool crowded = false;
  bool failover = false;
  double ping_ms = 100;
  double lease_ms = 300;
  double retry_ms = 2;
  double retry_cap_ms = 100;
};

std::vector<std::string> fault_names() {
  std::vector<std::string> names(kKeeperFaults.begin(), kKeeperFaults.end());  // the first is "none"
  names.insert(names.end(), wherry::kv::kNodeFaultNames.begin(), wherry::kv::kNodeFaultNames.end());
  names.emplace_back("trust_lanes");
  return names;
}

std::vector<std::string> trouble_names() {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < sim::Trouble::kKinds; ++i)
    names.emplace_back(name_of(static_cast<sim::Trouble::Kind>(i)));
  return names;
}

/// Precondition: `name` is one of fault_names().
void set_fault(const std::string& name, sim::ClusterOptions& options) {
  if (const auto fault = wherry::kv::node_fault_named(name)) {
    options.node_faults = {*fault};
    return;
  }
  if (name == "trust_lanes") {  // two clients on one lane, by the rule that had them believe each other's answers
    options.client.trust_lanes = true;
    options.lanes = sim::LanesOf::shared;
    return;
  }
  const auto* const keeper = std::ranges::find(kKeeperFaults, name);
  options.keeper_fault = static_cast<KeeperFault>(keeper - kKeeperFaults.begin());
}

constexpr std::array<std::string_view, 3> kFaultIn{"all", "cores", "software"};

/// False: no node of the requested kind can have this fault.
bool set_fault_in(const std::string& where, const std::string& fault, sim::ClusterOptions& options) {
  options.fault_in = static_cast<sim::FaultIn>(std::ranges::find(kFaultIn, where) - kFaultIn.begin());
  if (options.fault_in == sim::FaultIn::all) return true;
  const auto node = wherry::kv::node_fault_named(fault);
  if (!node) return false;
  return options.fault_in == sim::FaultIn::software || std::ranges::find(kFaultsOfCores, *node) != kFaultsOfCores.end();
}

struct Totals {
  std::uint64_t operations = 0, ok = 0, unknown = 0, events = 0, stuck = 0;
  sim::ClusterCounts cluster;
  std::array<std::uint64_t, sim::Trouble::kKinds> troubles{};
  std::uint64_t unlike = 0, elsewhere = 0;                  ///< tables in the end; keys not in their first bucket
  std::uint64_t leaders_died = 0, second_leaders_died = 0;  ///< while a node returned
};

void add(sim::Cluster& cluster, const sim::Trouble& trouble, Totals& totals) {
  const sim::History& history = cluster.workload().history();
  totals.operations += history.size();
  totals.ok += history.count(sim::Outcome::kOk);
  totals.unknown += history.count(sim::Outcome::kUnknown);
  totals.events += cluster.network().events();
  totals.stuck += trouble.stuck() || !cluster.workload().done() ? 1 : 0;
  const sim::ClusterCounts counts = cluster.counts();
  sim::ClusterCounts& sum = totals.cluster;
  sum.deaths += counts.deaths;
  sum.retries += counts.retries;
  sum.redirects += counts.redirects;
  sum.rolled_back += counts.rolled_back;
  sum.completed += counts.completed;
  sum.lanes_taken += counts.lanes_taken;
  sum.refreshed += counts.refreshed;
  sum.keeper.epochs += counts.keeper.epochs;
  sum.keeper.failovers += counts.keeper.failovers;
  sum.keeper.returns += counts.keeper.returns;
  sum.keeper.starts += counts.keeper.starts;
  totals.leaders_died += trouble.broken_return().leaders_died();
  totals.second_leaders_died += trouble.broken_return().second_leaders_died();
  for (std::size_t i = 0; i < totals.troubles.size(); ++i)
    totals.troubles[i] += trouble.count(static_cast<sim::Trouble::Kind>(i));
}

void print(const Totals& t) {
  std::string troubles;
  for (std::size_t i = 0; i < t.troubles.size(); ++i)
    troubles +=
        fmt::format("{}\"{}\":{}", i == 0 ? "" : ",", name_of(static_cast<sim::Trouble::Kind>(i)), t.troubles[i]);
  const sim::ClusterCounts& c = t.cluster;
  fmt::print(
      "{{\"operations\":{},\"ok\":{},\"unknown\":{},\"events\":{},\"stuck\":{},\"deaths\":{},\"retries\":{},"
      "\"redirects\":{},\"rolled_back\":{},\"completed\":{},\"refreshed\":{},\"epochs\":{},\"failovers\":{},"
      "\"returns\":{},\"keeper_starts\":{},\"lanes_taken\":{},\"leaders_died\":{},\"second_leaders_died\":{},"
      "\"unlike\":{},\"elsewhere\":{},\"troubles\":{{{}}}}}\n",
      t.operations, t.ok, t.unknown, t.events, t.stuck, c.deaths, c.retries, c.redirects, c.rolled_back, c.completed,
      c.refreshed, c.keeper.epochs, c.keeper.failovers, c.keeper.returns, c.keeper.starts, c.lanes_taken,
      t.leaders_died, t.second_leaders_died, t.unlike, t.elsewhere, troubles);
}

/// Seeds differ in the number of nodes; in whether a lease is much longer than the detection of silence; in whether
/// late frames arrive after the next few requests or after the next epoch; and in the source of the clients' lanes.
void vary(std::uint64_t seed, const Arguments& arguments, sim::ClusterOptions& options) {
  options.nodes = arguments.nodes != 0 ? arguments.nodes : 2 + static_cast<std::uint32_t>(seed % 4);
  options.hardware_nodes = static_cast<std::uint32_t>(arguments.rtl);
  if (arguments.rtl < 0) options.hardware_nodes = 1 + static_cast<std::uint32_t>(seed / 16 % options.nodes);
  options.hardware_nodes = std::min(options.hardware_nodes, options.nodes);
  options.lease = (seed / 4 % 2 == 0 ? 3 : 12) * options.ping_interval;
  options.link.lateness = seed / 8 % 2 == 0 ? 10'000 : 15 * options.ping_interval;
  if (seed / 2 % 2 == 0) options.link.duplicate *= 10;
  static constexpr std::array kLanes{sim::LanesOf::own, sim::LanesOf::granted, sim::LanesOf::granted,
                                     sim::LanesOf::shared};
  if (!options.client.trust_lanes) options.lanes = kLanes[seed / 32 % kLanes.size()];
  if (arguments.crowded) {
    options.workload.bucket_bits = seed % 3 == 0 ? 9 : 11;
    options.workload.bucket_keys = 7;
    options.workload.near_keys = 3;
  }
  // As long as a node that hears no writes stays a member, the writes that it misses can be lost with the nodes that
  // have them.
  if (arguments.trouble == "broken_return") options.silence *= 20;
  if (arguments.old_versions) options.versions = sim::old_versions(seed);
}

wherry::Status simulate(std::uint64_t seed, const Arguments& arguments, sim::ClusterOptions options, Totals& totals) {
  vary(seed, arguments, options);
  sim::Cluster cluster(seed, options);
  sim::Trouble trouble(cluster, ~seed);
  if (const auto only = sim::trouble_named(arguments.trouble)) trouble.set_only(*only);
  std::unique_ptr<sim::Pcap> pcap;
  if (!arguments.pcap.empty()) {
    WHERRY_ASSIGN(pcap, sim::Pcap::create(arguments.pcap));
    trouble.set_next(pcap.get());
  }
  cluster.start();
  trouble.start();
  sim::Network& network = cluster.network();
  while (!cluster.workload().done() && !trouble.stuck() && network.now() < kLimit && network.step()) {
  }
  const Cycles patience = network.now() + kLimit;
  while (!cluster.at_rest() && !trouble.stuck() && network.now() < patience && network.step()) {
  }
  add(cluster, trouble, totals);
  if (cluster.at_rest()) {
    if (const auto alike = cluster.compare_tables(); !alike.ok()) {
      ++totals.unlike;
      fmt::print(stderr, "seed {}: {}\n", seed, alike.message());
    } else {
      totals.elsewhere += cluster.keys_elsewhere();
    }
  }
  return cluster.workload().history().write(fmt::format("{}/{}-{}.jsonl", arguments.folder, arguments.fault, seed));
}

int failover(const Arguments& arguments) {
  sim::ClusterOptions options{.nodes = arguments.nodes != 0 ? arguments.nodes : 3, .link = {}};
  const auto cycles = [](double ms) { return static_cast<Cycles>(ms * static_cast<double>(kMillisecond)); };
  options.ping_interval = cycles(arguments.ping_ms);
  options.lease = cycles(arguments.lease_ms);
  options.client.first_timeout = cycles(arguments.retry_ms);
  options.client.timeout_cap = cycles(arguments.retry_cap_ms);
  options.client.deadline = 5000 * kMillisecond;
  options.driver.busy_interval = std::min<Cycles>(500'000, options.ping_interval / 10);
  options.driver.idle_interval = options.ping_interval;
  std::array<std::vector<Cycles>, 3> times;
  for (std::uint64_t seed = arguments.seed; seed < arguments.seed + arguments.count; ++seed) {
    const auto measured = sim::measure_failover(seed, options);
    if (!measured) {
      fmt::print(stderr, "seed {}: no write was acknowledged within 10 s\n", seed);
      return EXIT_FAILURE;
    }
    times[0].push_back(measured->published);
    times[1].push_back(measured->confirmed);
    times[2].push_back(measured->written);
  }
  constexpr std::array<std::string_view, 3> kNames{"epoch published", "epoch entered by all", "first write"};
  fmt::print("{} seeds, {} nodes, ping {} ms, lease {} ms, client's timeouts {} to {} ms\n", arguments.count,
             options.nodes, arguments.ping_ms, arguments.lease_ms, arguments.retry_ms, arguments.retry_cap_ms);
  for (std::size_t i = 0; i < times.size(); ++i) {
    std::ranges::sort(times[i]);
    const auto ms = [&](std::size_t percent) {
      return static_cast<double>(times[i][(times[i].size() - 1) * percent / 100]) / static_cast<double>(kMillisecond);
    };
    fmt::print("{:<21} p50 {:8.3f} ms  p99 {:8.3f} ms  most {:8.3f} ms\n", kNames[i], ms(50), ms(99), ms(100));
  }
  return EXIT_SUCCESS;
}

}  // namespace

int wherry::kv::sim::run_cluster_program(int count, char** values, MachineFactory hardware) {
  Arguments arguments;
  sim::ClusterOptions options;
  options.hardware = std::move(hardware);
  CLI::App app{"Clusters of the kv store in virtual time"};
  app.add_option("--seed", arguments.seed, "the first");
  app.add_option("--count", arguments.count, "how many seeds")->check(CLI::PositiveNumber);
  app.add_option("--nodes", arguments.nodes, "0: 2 to 5, as the seed says")->check(CLI::Range(0, 8));
  if (options.hardware)
    app.add_option("--rtl", arguments.rtl,
                   "so many of the nodes are Verilated cores; -1: as the seed says, at least one");
  app.add_option("--clients", options.clients)->check(CLI::Range(1, 16));
  app.add_option("--operations", options.workload.operations, "of each client");
  app.add_option("--loss", options.link.loss, "of a frame, in parts per million");
  app.add_option("--duplicate", options.link.duplicate, "likewise");
  app.add_option("--late", options.link.late, "likewise");
  app.add_option("--fault", arguments.fault, "a breach of the protocol, by its name in NodeFault or KeeperFault")
      ->check(CLI::IsMember(fault_names()));
  if (options.hardware)
    app.add_option("--fault-in", arguments.fault_in, "which nodes have it: all, cores or software")
        ->check(CLI::IsMember(std::vector<std::string>(kFaultIn.begin(), kFaultIn.end())));
  app.add_option("--trouble", arguments.trouble, "nothing else goes wrong")->check(CLI::IsMember(trouble_names()));
  app.add_option("--out", arguments.folder, "for histories")->check(CLI::ExistingDirectory);
  app.add_option("--pcap", arguments.pcap, "what passed over the network; with one seed");
  app.add_flag(
      "--old-versions", arguments.old_versions,
      "the table is one of billions of writes: versions begin near 2^30, 2^31 and 2^32, and lag within a bucket");
  app.add_flag("--crowded", arguments.crowded,
               "keys have several buckets, and more of them share their first one than it holds");
  app.add_flag("--failover", arguments.failover, "measure how long a leader's keys cannot be written after its death");
  app.add_option("--ping-ms", arguments.ping_ms, "of the keeper, with --failover");
  app.add_option("--lease-ms", arguments.lease_ms, "with --failover");
  app.add_option("--retry-ms", arguments.retry_ms, "a client's first timeout, with --failover");
  app.add_option("--retry-cap-ms", arguments.retry_cap_ms, "a client's longest timeout, with --failover");
  wherry::parse_command_line(app, count, values);
  if (arguments.failover) return failover(arguments);
  set_fault(arguments.fault, options);
  if (!set_fault_in(arguments.fault_in, arguments.fault, options)) {
    fmt::print(stderr, "--fault-in {}: the fault {} cannot be put into these nodes alone\n", arguments.fault_in,
               arguments.fault);
    return EXIT_FAILURE;
  }
  Totals totals;
  for (std::uint64_t seed = arguments.seed; seed < arguments.seed + arguments.count; ++seed) {
    if (const auto done = simulate(seed, arguments, options, totals); !done.ok()) {
      fmt::print(stderr, "{}\n", done.to_string());
      return EXIT_FAILURE;
    }
  }
  print(totals);
  return EXIT_SUCCESS;
}
