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

/// What an agent counted in the whole of its life.
struct AgentCounts {
  double bytes = 0;      ///< forwarded, headers included
  double transfers = 0;  ///< times that a buffer, or a part of one, was handed on
  double blocked = 0;    ///< times that there was no room for more
};

/// One job from its start to its end. Element i is what rank i returned. `agents`: filled by node; null: the agents
/// serve no metrics. Throws std::runtime_error with what a rank said when it failed, or which one died.
std::vector<Results> run_job(const JobOptions& options, const RankBody& body,
                             std::vector<AgentCounts>* agents = nullptr);

/// In bytes, as /proc/PID/smaps_rollup has it.
struct AgentMemory {
  std::size_t rss = 0, pss = 0;
  std::size_t idle_rss = 0;  ///< before the job
};
/// Of the agents of the job that is running now, by node; for its ranks.
std::vector<AgentMemory> agent_memory();

}  // namespace wherry::bench
