// SPDX-License-Identifier: Apache-2.0
// bench_probe_cache: measures paper 001 section 6 on two cores of this machine (docs/design/probe-cache.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/report.hpp"
#include "probe/cache_model.hpp"

namespace wherry::bench {

struct CacheBench {
  int agent_core = -1, other_core = -1;
  bool quick = false;
  CacheSystem caches;  ///< of the agent's core; no levels: not known
  Report& report;

  /// Bytes of level 2 and of the last level; typical values if the machine does not report them.
  [[nodiscard]] std::size_t level2() const {
    return caches.levels.size() > 1 ? caches.levels[1].bytes : std::size_t{1} << 20;
  }
  [[nodiscard]] std::size_t last_level() const {
    return caches.levels.empty() ? std::size_t{32} << 20 : caches.levels.back().bytes;
  }
};

/// Rows "cache_agent": the agent's rate with communication buffers of several sizes, with the values of the machine's
/// counters.
void run_agent(CacheBench& bench);
/// Rows "cache_touch": the time to receive messages and read each byte.
void run_touch(CacheBench& bench);
/// Rows "cache_neighbour": the agent beside a thread that streams through memory.
void run_neighbour(CacheBench& bench);

}  // namespace wherry::bench
