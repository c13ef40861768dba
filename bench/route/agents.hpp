// SPDX-License-Identifier: Apache-2.0
// Agents that jobs take turns with: starting one takes longer than most jobs do. Those that no job uses stand still.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>

#include "session/embedded.hpp"

namespace wherry::bench {

/// What an agent has counted so far.
struct AgentCounts {
  double bytes = 0;      ///< forwarded, headers included
  double transfers = 0;  ///< times that a buffer, or a part of one, was handed on
  double blocked = 0;    ///< times that there was no room for more
};

/// In bytes, as /proc/PID/smaps_rollup has it.
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
  /// Throws std::runtime_error when its metrics cannot be read.
  [[nodiscard]] AgentCounts counts() const;
};

class AgentPool {
 public:
  AgentPool() = default;
  AgentPool(const AgentPool&) = delete;
  AgentPool& operator=(const AgentPool&) = delete;
  ~AgentPool();

  /// One that stood still, or a new one. `fresh`: a new one. Throws std::runtime_error.
  RunningAgent& take(int core, std::uint32_t threads, bool fresh);
  void stand_still(RunningAgent& agent) noexcept;
  void end(const RunningAgent& agent) noexcept;

 private:
  /// A process that wakes all agents when this one is gone, however it went: who stands still cannot see that it
  /// should end.
  void start_keeper();

  std::list<RunningAgent> agents_;
  Fd keeper_;  ///< takes process ids; when it closes, they are woken
  int keeper_pid_ = -1;
};

}  // namespace wherry::bench
