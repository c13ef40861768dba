// SPDX-License-Identifier: Apache-2.0
// Tests a kv core behind NIC models of all families: its answers, and that NIC and PCIe take most of the time.
#include "sim/nic_node.hpp"

#include <gtest/gtest.h>

#include "sim/nic_latency.hpp"

namespace wherry::kv::rtl {
namespace {

class NicNodeOf : public testing::TestWithParam<const char*> {};

TEST_P(NicNodeOf, ReadsBehindTheNic_ExpectValuesAndTheCoresOwnTime) {
  const NicLatency here = measure_nic_latency(GetParam(), 64, 3);  // compares what is read
  const NicLatency ixgbe = measure_nic_latency("ixgbe", 64, 3);
  EXPECT_DOUBLE_EQ(here.core, ixgbe.core) << "the kv core does not know what NIC it is behind";
  EXPECT_GT(here.core, 100.0);
  EXPECT_GT(here.wire, here.core + 1400.0) << "four ways of at least 350 ns through PCIe: two tails apart";
}

INSTANTIATE_TEST_SUITE_P(Families, NicNodeOf, testing::Values("e1000e", "igb", "ixgbe", "i40e", "ice", "iavf"));

}  // namespace
}  // namespace wherry::kv::rtl
