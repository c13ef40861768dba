// SPDX-License-Identifier: Apache-2.0
// That clusters with troubles go on; whether what they answer is right, python/tests/test_kv_cluster.py judges.
#include "kv/sim/cluster.hpp"

#include <gtest/gtest.h>

#include "kv/sim/failover_testing.hpp"
#include "kv/sim/trouble.hpp"

namespace wherry::kv::sim {
namespace {

class KvCluster : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(KvCluster, Troubles_ExpectItWholeAgainAndEveryClientAnswered) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Cluster cluster(seed, {.nodes = GetParam()});
    Trouble trouble(cluster, ~seed);
    cluster.start();
    trouble.start();
    while (!cluster.workload().done() && !trouble.stuck() && cluster.network().step()) {
    }
    EXPECT_TRUE(cluster.workload().done()) << "seed " << seed;
    const ClusterCounts counts = cluster.counts();
    EXPECT_GE(counts.deaths, 1U);
    EXPECT_GE(counts.keeper.returns, 1U);
    EXPECT_GT(cluster.workload().history().count(Outcome::kOk), 400U);
  }
}
INSTANTIATE_TEST_SUITE_P(Nodes, KvCluster, ::testing::Values(2, 3, 5, 8));

TEST(KvFailover, LeaderDies_ExpectAWriteAfterThreeOrFourPings) {
  const ClusterOptions options{.link = {}};
  const auto times = measure_failover(1, options);
  ASSERT_TRUE(times);
  EXPECT_GE(times->published, 3 * options.ping_interval);
  EXPECT_LE(times->published, 4 * options.ping_interval + 2 * options.control_latency);
  EXPECT_GT(times->written, times->published);
  EXPECT_LT(times->written, times->published + options.client.timeout_cap);
}

}  // namespace
}  // namespace wherry::kv::sim
