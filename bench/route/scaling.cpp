// SPDX-License-Identifier: Apache-2.0
// Growing numbers of nodes on the same two cores: cost of a message (paper 001, figure 8) and memory of an agent.
#include <fmt/core.h>

#include <algorithm>

#include "all_to_all.hpp"
#include "experiments.hpp"
#include "route/inbox.hpp"
#include "route/layout.hpp"
#include "turns.hpp"

namespace wherry::bench {
namespace {

JobOptions nodes_of_one_rank(const RouteBench& bench, std::uint32_t nodes) {
  JobOptions job = bench.two_nodes(route::Placement::kHost);
  job.nodes = nodes;
  return job;
}

/// Memory of an agent's buffers according to src/route/layout.hpp.
struct Formula {
  std::size_t inbox = 0;  ///< its own: what the budget counts
  std::size_t lanes = 0;  ///< of others' inboxes, the rings that it writes into
};
Formula formula(std::uint32_t nodes) {
  std::vector<std::uint32_t> node_of_rank(nodes);
  for (std::uint32_t node = 0; node < nodes; ++node) node_of_rank[node] = node;
  const route::Topology topology(node_of_rank);
  const route::AgentLayout layout{topology, 0, 1};
  const route::RingShape shape;
  return {route::InboxShape{layout.inputs(0), shape}.bytes(), layout.lanes() * shape.bytes()};
}

}  // namespace

void run_weak_scaling(RouteBench& bench) {
  const std::size_t messages = bench.quick() ? 200'000 : 1'000'000;
  struct Samples {
    std::vector<double> cost, over_2, rank_transfer, agent_transfer;
  };
  std::map<std::uint32_t, Samples> all;
  for (int round = 0; round < bench.rounds(); ++round) {
    for (const std::uint32_t nodes : {1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U}) {
      std::vector<AgentCounts> counts;
      const auto results = run_job(
          nodes_of_one_rank(bench, nodes),
          [&](route::Runtime& runtime, const SharedMemory&) { return all_to_all(runtime, messages, 3).pack(); },
          &counts);
      const AllToAll first = AllToAll::unpack(results.front());
      Samples& samples = all[nodes];
      samples.cost.push_back(first.seconds * 1e9 / (static_cast<double>(messages) * nodes));
      samples.rank_transfer.push_back(first.transfer_bytes);
      samples.agent_transfer.push_back(average_transfer(counts));
    }
    for (auto& [nodes, samples] : all) samples.over_2.push_back(samples.cost.back() / all[2].cost.back());
  }
  for (auto& [nodes, samples] : all) {
    bench.row("weak_scaling", {{"nodes", nodes},
                               {"ns_per_message", median(samples.cost)},
                               {"over_2_nodes", median(samples.over_2)},
                               {"rank_transfer_bytes", median(samples.rank_transfer)},
                               {"agent_transfer_bytes", median(samples.agent_transfer)}});
    bench.progress(fmt::format(
        "{} nodes: {:.1f} ns a message, {:.2f} times that of 2; transfers of ranks {:.0f} bytes, of agents {:.0f}",
        nodes, median(samples.cost), median(samples.over_2), median(samples.rank_transfer),
        median(samples.agent_transfer)));
  }
  bench.bar("weak_scaling_8", all[8].over_2, "<=", 2);
}

void run_agent_memory(RouteBench& bench) {
  struct Samples {
    std::vector<double> rss, pss, idle;
  };
  for (const std::uint32_t nodes : {1U, 2U, 4U, 8U, 16U}) {
    if (nodes > 8 && bench.quick()) break;
    Samples samples;
    for (int round = 0; round < (bench.quick() ? 1 : 3); ++round) {
      JobOptions job = nodes_of_one_rank(bench, nodes);
      job.fresh_agents = true;
      const auto results = run_job(job, [&](route::Runtime& runtime, const SharedMemory&) -> Results {
        // Enough messages to fill each ring to its end, so that all its memory is in use.
        all_to_all(runtime, std::max<std::size_t>(20'000 * nodes, 100'000), 1);
        AgentMemory most;
        if (runtime.rank() == 0) {
          for (const AgentMemory& one : agent_memory()) {
            most.rss = std::max(most.rss, one.rss);
            most.pss = std::max(most.pss, one.pss);
            most.idle_rss = std::max(most.idle_rss, one.idle_rss);
          }
        }
        barrier(runtime);  // until the memory is read: it goes when a rank leaves
        return {static_cast<double>(most.rss), static_cast<double>(most.pss), static_cast<double>(most.idle_rss)};
      });
      samples.rss.push_back(results.front()[0]);
      samples.pss.push_back(results.front()[1]);
      samples.idle.push_back(results.front()[2]);
    }
    const Formula of = formula(nodes);
    bench.row("agent_memory", {{"nodes", nodes},
                               {"rss_bytes", median(samples.rss)},
                               {"pss_bytes", median(samples.pss)},
                               {"idle_rss_bytes", median(samples.idle)},
                               {"inbox_bytes", of.inbox},
                               {"lane_bytes", of.lanes}});
    bench.progress(
        fmt::format("{} nodes: an agent has {:.2f} MiB, {:.2f} more than without a job; its layout says {:.2f}", nodes,
                    median(samples.rss) / 1048576, (median(samples.rss) - median(samples.idle)) / 1048576,
                    static_cast<double>(of.inbox + of.lanes) / 1048576));
  }
}

}  // namespace wherry::bench
