// SPDX-License-Identifier: Apache-2.0
// Agents that serve several jobs, one after the other, because the start of an agent takes longer than most jobs.
// Agents without a job are stopped (SIGSTOP).
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>

#include "session/embedded.hpp"

namespace wherry::bench {

/// Counters of an agent.
struct AgentCounts {
  double bytes = 0;      ///< forwarded, headers included
  double transfers = 0;  ///< buffers, or parts of one, that were handed on
  double blocked = 0;    ///< times that a next hop had no room
};

/// The agent's memory in bytes, from /proc/PID/smaps_rollup.
struct AgentMemory {
  std::size_t rss = 0, pss = 0;
  std::size_t idle_rss = 0;  ///< before its first job
};

struct RunningAgent {
  session::EmbeddedProcess process;
  int core = 0;
  std::uint32_t threads = 1;
  bool taken = false;
  std::size_t idle_rss = 0;

  [[nodiscard]] AgentMemory memory() const;
  /// Throws std::runtime_error if its metrics cannot be read.
  [[nodiscard]] AgentCounts counts() const;
};

class AgentPool {
 public:
  AgentPool() = default;
  AgentPool(const AgentPool&) = delete;
  AgentPool& operator=(const AgentPool&) = delete;
  ~AgentPool();

  /// Continues a stopped agent, or starts a new one; `fresh` always starts one. Throws std::runtime_error.
  RunningAgent& take(int core, std::uint32_t threads, bool fresh);
  /// Stops it until a later job takes it.
  void give_back(RunningAgent& agent) noexcept;
  void end(const RunningAgent& agent) noexcept;

 private:
  /// Starts a process that continues all agents when this process has ended, also after a crash. A stopped agent cannot
  /// notice that it should end.
  void start_keeper();

  std::list<RunningAgent> agents_;
  Fd keeper_;  ///< takes process ids; when it is closed, those processes are continued
  int keeper_pid_ = -1;
};

}  // namespace wherry::bench
