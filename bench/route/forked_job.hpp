// SPDX-License-Identifier: Apache-2.0
// Jobs for benchmarks: this process forks the ranks and starts their agents, each pinned to its core. The ranks return
// their results through shared memory.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "agents.hpp"
#include "wherry/route.hpp"

namespace wherry::bench {

struct JobOptions {
  std::uint32_t nodes = 1;
  std::uint32_t ranks_per_node = 1;
  route::Placement placement = route::Placement::kInline;
  route::Options route;
  std::vector<int> rank_cores{0};   ///< of ranks 0, 1, ..., in turn
  std::vector<int> agent_cores{1};  ///< of the agents of nodes 0, 1, ..., in turn
  std::uint32_t routing_threads = 1;
  bool fresh_agents = false;     ///< agents that serve no other job
  std::size_t shared_bytes = 0;  ///< of SharedMemory::extra
  std::chrono::seconds timeout{120};
};

/// Memory that the ranks of a job share with each other and with the process that forked them.
struct SharedMemory {
  std::span<std::byte> extra;  ///< zeroed, page-aligned
};

/// A rank's results: up to 64 Ki numbers.
using Results = std::vector<double>;
using RankBody = std::function<Results(route::Runtime&, const SharedMemory&)>;

/// Runs a job. Element i is the result of rank i. `agents`: receives the agents' counts during the job, by node. Throws
/// std::runtime_error with the failed rank's error, or with the number of a rank that died.
std::vector<Results> run_job(const JobOptions& options, const RankBody& body,
                             std::vector<AgentCounts>* agents = nullptr);

/// Memory of the running job's agents, by node. Called by its ranks.
std::vector<AgentMemory> agent_memory();

/// Ends all agents; called between jobs. Later jobs start others.
void end_agents();

}  // namespace wherry::bench
