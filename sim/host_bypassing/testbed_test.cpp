// SPDX-License-Identifier: Apache-2.0
// Tests of the testbed and of the software baselines: without a cause of loss no packet is lost or changed, and the
// counters add up.
#include "sim/host_bypassing/testbed.hpp"

#include <gtest/gtest.h>

#include "sim/host_bypassing/software.hpp"

namespace wherry::sim::host_bypassing {
namespace {

constexpr std::uint32_t kShort = 300;

TEST(Testbed, OneWayAtLineRate_ExpectEveryPacketOnceAndInOrder) {
  for (const Scenario scenario : {Scenario::kReceive, Scenario::kTransmit}) {
    Testbed bed({.scenario = scenario});
    ASSERT_TRUE(bed.ready());
    bed.run(500, 2000, kShort, 1000);
    bed.queue.run();
    EXPECT_EQ(bed.meter.checker().frames, 2500U);
    EXPECT_EQ(bed.meter.checker().wrong + bed.meter.checker().missing + bed.meter.checker().reordered, 0U);
    EXPECT_EQ(bed.core.counters().port_dropped, 0U);
    // A packet cannot leave before it has arrived: NIC and wire alone take this long.
    EXPECT_GT(bed.meter.total().least_us, 2.35);
  }
}

TEST(Testbed, BothWays_ExpectSlowerThanEitherAlone) {
  double us[3] = {};
  for (const Scenario scenario : {Scenario::kBoth, Scenario::kReceive, Scenario::kTransmit}) {
    Testbed bed({.scenario = scenario});
    bed.run(500, 1000, kShort, 500);
    us[static_cast<std::size_t>(scenario)] = bed.meter.total().mean_us();
  }
  EXPECT_GT(us[0], us[1]);
  EXPECT_GT(us[0], us[2]);
  // The sum contains the port's 250 ns. A frame that goes both ways saves them, because it is stored only once.
  EXPECT_LT(us[0], us[1] + us[2] + 0.4);
}

TEST(Testbed, JoinedHandlers_ExpectShorterByTheTransmitHandlersBeats) {
  double us[2] = {};
  for (const bool joined : {false, true}) {
    Testbed bed({.core = {.joined = joined}});
    bed.run(500, 1000, kShort, 500);
    us[joined ? 1 : 0] = bed.meter.total().mean_us();
  }
  EXPECT_NEAR(us[0] - us[1], 38 * 0.004, 0.005);  // 38 beats of 8 bytes
}

TEST(Slice, MeanAndDeviation_ExpectThoseByHand) {
  Slice slice;
  for (const double us : {1.0, 2.0, 3.0, 6.0}) slice.add(us);
  EXPECT_DOUBLE_EQ(slice.mean_us(), 3.0);
  EXPECT_NEAR(slice.deviation_ns(), 1870.8, 0.1);  // square root of 3.5
  EXPECT_EQ(slice.least_us, 1.0);
  EXPECT_EQ(slice.most_us, 6.0);
}

TEST(Software, ForwardingAtLineRate_ExpectEveryPacketBack) {
  SoftwareTestbed bed({}, {});
  ASSERT_TRUE(bed.ready());
  const Interval found = bed.run(2000, 4000, kShort, 1000);
  EXPECT_EQ(found.dropped, 0U);
  EXPECT_EQ(bed.meter().checker().wrong + bed.meter().checker().missing + bed.meter().checker().reordered, 0U);
  EXPECT_EQ(found.out, 4000U);
  EXPECT_LT(bed.meter().total().most_us, 25);  // the paper: mostly below 25 us (hb_s1_latency_mostly)
}

TEST(Software, ThroughTheFpga_ExpectItsRateAndNoPacketLostBelowIt) {
  {
    SoftwareTestbed bed({.fpga = true}, {});
    const Interval found = bed.run(500, 3000, kShort, 200);  // 1.88 Gbit/s
    EXPECT_EQ(found.dropped, 0U);
    EXPECT_EQ(bed.meter().checker().wrong + bed.meter().checker().missing + bed.meter().checker().reordered, 0U);
  }
  SoftwareTestbed bed({.fpga = true}, {});
  const Interval found = bed.run(6000, 6000, kShort, 1000);
  // A packet comes every 259.2 ns, and each takes 1.024 us; a burst of 32 more or less at the interval's ends.
  EXPECT_NEAR(static_cast<double>(found.out) / 6000, 259.2 / 1024, 0.01);
  EXPECT_EQ(bed.meter().checker().wrong + bed.meter().checker().reordered, 0U);
}

}  // namespace
}  // namespace wherry::sim::host_bypassing
