// SPDX-License-Identifier: Apache-2.0
// Clusters of Verilated cores, whose drivers learn only from registers.
#include "kv/sim/cluster.hpp"

#include <gtest/gtest.h>

#include "sim/machine.hpp"

namespace wherry::kv::rtl {
namespace {

using sim::Cluster;

TEST(KvHardwareCluster, TwoMembersCannotReachEachOther_ExpectOneRemovedAndWritesToGoOn) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Cluster cluster(
        seed,
        {.nodes = 3, .workload = {.operations = 60}, .link = {}, .hardware_nodes = 3, .hardware = machine_factory()});
    cluster.start();
    sim::Network& network = cluster.network();
    while (!cluster.whole()) ASSERT_TRUE(network.step());
    const sim::Link nothing{.loss = 1'000'000};
    const auto a = static_cast<std::uint32_t>(seed % 3);
    const std::uint32_t b = (a + 1) % 3;
    network.set_link(Cluster::port_of(a), Cluster::port_of(b), nothing);
    if (seed % 2 == 0) network.set_link(Cluster::port_of(b), Cluster::port_of(a), nothing);
    bool removed = false;
    while (!cluster.workload().done() && network.now() < 20'000'000) {
      ASSERT_TRUE(network.step());
      const NodeMask serving = cluster.keeper().keeper().configuration().serving;
      removed = removed || !has(serving, a) || !has(serving, b);
      EXPECT_TRUE(has(serving, 3 - a - b)) << "the one that everybody reaches stays";
    }
    EXPECT_TRUE(cluster.workload().done()) << "seed " << seed;
    EXPECT_TRUE(removed) << "seed " << seed;
    // Each client has at most a few unknown outcomes: from finding the node, and from each retry.
    EXPECT_LT(cluster.workload().history().count(sim::Outcome::kUnknown), 40U) << "seed " << seed;
    EXPECT_GT(cluster.workload().history().count(sim::Outcome::kOk), 120U) << "seed " << seed;
  }
}

}  // namespace
}  // namespace wherry::kv::rtl
