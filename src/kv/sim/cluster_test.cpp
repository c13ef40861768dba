// SPDX-License-Identifier: Apache-2.0
// Tests that clusters continue after troubles. python/tests/test_kv_cluster.py checks that their answers are right.
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

/// The keeper hears all nodes, but two of them cannot hear each other.
TEST(KvCluster, TwoMembersCannotReachEachOther_ExpectOneRemovedAndWritesToGoOn) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Cluster cluster(seed, {.nodes = 3, .workload = {.operations = 2000}, .link = {}});
    cluster.start();
    Network& network = cluster.network();
    while (!cluster.whole()) ASSERT_TRUE(network.step());
    const Link nothing{.loss = 1'000'000};
    const auto a = static_cast<std::uint32_t>(seed % 3);
    const std::uint32_t b = (a + 1) % 3;
    network.set_link(Cluster::port_of(a), Cluster::port_of(b), nothing);
    if (seed % 2 == 0) network.set_link(Cluster::port_of(b), Cluster::port_of(a), nothing);
    while (!cluster.workload().done() && network.now() < 400'000'000) ASSERT_TRUE(network.step());
    EXPECT_TRUE(cluster.workload().done()) << "seed " << seed;
    // Each client has a few at most: while the node is being detected, and each time that its path is tried again.
    EXPECT_LT(cluster.workload().history().count(Outcome::kUnknown), 60U) << "seed " << seed;
    EXPECT_GT(cluster.workload().history().count(Outcome::kOk), 4000U) << "seed " << seed;
    const NodeMask serving = cluster.keeper().keeper().configuration().serving;
    EXPECT_FALSE(has(serving, a) && has(serving, b)) << "seed " << seed;
    EXPECT_TRUE(has(serving, 3 - a - b)) << "the one that everybody reaches stays";
  }
}

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
