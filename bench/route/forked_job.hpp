// SPDX-License-Identifier: Apache-2.0
// Jobs for measuring: ranks are forked from this process, agents are started beside them, everything is pinned, and a
// piece of shared memory brings the results back.
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
  bool fresh_agents = false;     ///< that no other job has had, or will have
  std::size_t shared_bytes = 0;  ///< of SharedMemory::extra
  std::chrono::seconds timeout{120};
};

/// What the ranks of a job, and the process that forked them, have in common.
struct SharedMemory {
  std::span<std::byte> extra;  ///< zeroed, page-aligned
};

/// What a rank gives back: up to 64 Ki numbers.
using Results = std::vector<double>;
using RankBody = std::function<Results(route::Runtime&, const SharedMemory&)>;

/// One job from its start to its end. Element i is what rank i returned. `agents`: what those of the job counted in it,
/// by node. Throws std::runtime_error with what a rank said when it failed, or which one died.
std::vector<Results> run_job(const JobOptions& options, const RankBody& body,
                             std::vector<AgentCounts>* agents = nullptr);

/// Of the agents of the job that is running now, by node; for its ranks.
std::vector<AgentMemory> agent_memory();

/// Ends the agents that stand still between jobs. Jobs start others.
void end_agents();

}  // namespace wherry::bench
