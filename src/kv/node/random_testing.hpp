// SPDX-License-Identifier: Apache-2.0
// Clients, a keeper and random faults around a Cluster, all from one seed. The result is one history per key.
#pragma once

#include "kv/node/history_testing.hpp"
#include "kv/node/testing.hpp"

namespace wherry::kv::testing {

struct Story {
  std::map<std::uint64_t, History> histories;
  std::map<Status, unsigned> statuses;  ///< how operations ended
  std::uint64_t values = 0;             ///< written
  unsigned unknown = 0;
  unsigned epochs = 0;
  unsigned returns = 0;  ///< nodes that came back and served again
  unsigned takeovers = 0;
  bool old_versions = false;
  unsigned elsewhere = 0;   ///< keys that were in the end not in their first bucket
  bool same_tables = true;  ///< of all members, in the end, each with every key at one location
  [[nodiscard]] bool caught() const { return !linearizable() || !same_tables; }

  [[nodiscard]] bool linearizable() const {
    for (const auto& [key, history] : histories)
      if (!testing::linearizable(history, old_versions)) return false;
    return true;
  }
};

/// Runs `operations` of six clients on ten keys of three buckets, with `nodes` nodes. old_versions: the initial
/// versions of a bucket's locations; one is 0. bucket_bits: above 8, a key has several buckets, and more keys share a
/// first bucket, so many are in another one.
[[nodiscard]] Story tell_story(std::uint64_t seed, unsigned nodes, unsigned operations, const NodeFaults& faults = {},
                               const std::array<std::uint32_t, kWays>& old_versions = {}, unsigned bucket_bits = 8);

}  // namespace wherry::kv::testing
