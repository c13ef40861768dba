// SPDX-License-Identifier: Apache-2.0
// The published points of paper 002 that depend on the fabric alone (published/host_bypassing.csv).
#include <gtest/gtest.h>

#include <string>

#include "sim/pcie/paper_traffic.hpp"

namespace wherry::sim::pcie::paper {
namespace {

/// Bytes per packet that the FPGA sends, as Table II counts them: without rx descriptor fetches (published/README.md).
double outgoing(const System& system) {
  const PortCounters& fpga = system.fpga_port->counters();
  const auto packets = static_cast<double>(system.nic.transmitted);
  return static_cast<double>(fpga.completion_bytes_sent + fpga.write_bytes_sent) / packets - 16;
}

struct Row {
  std::uint32_t batch;
  Time timeout;
  double published;
};
class TableTwo : public testing::TestWithParam<Row> {};
TEST_P(TableTwo, BytesOnThePcieBus_ExpectThePublishedOnes) {
  const Row& row = GetParam();
  // The paper's own arithmetic: 300 bytes at 10 Gbit/s take 240 ns (research section 4).
  System system({}, true,
                {.gap = 240 * kNanosecond, .packets = 20'000, .tail_batch = row.batch, .tail_timeout = row.timeout});
  ASSERT_TRUE(system.ready.ok());
  system.queue.run();
  EXPECT_EQ(system.nic.transmitted, 20'000U);
  EXPECT_EQ(system.nic.wrong + system.nic.failed + system.nic.dropped, 0U);
  EXPECT_NEAR(outgoing(system) / row.published, 1, 0.001);
  EXPECT_NEAR(static_cast<double>(system.fpga_port->counters().write_bytes_received) / 20'000, 316, 0.01);
}
INSTANTIATE_TEST_SUITE_P(Published, TableTwo,
                         testing::Values(Row{1, kNever, 324}, Row{8, 2500 * kNanosecond, 317},
                                         Row{16, 2500 * kNanosecond, 316.7}));

/// Loss in the steady state, in per cent, of 300-byte packets at line rate.
double loss(const RootOptions& root, bool tx_writeback, std::uint32_t tail_batch = 1) {
  System system({.root = root}, false,
                {.packets = ~std::uint64_t{0},
                 .tx_writeback = tx_writeback,
                 .tail_batch = tail_batch,
                 .tail_timeout = tail_batch == 1 ? kNever : 2500 * kNanosecond});
  system.queue.run(7 * kMillisecond);  // its buffer is full then, if it ever is
  const std::uint64_t arrived = system.nic.arrived, dropped = system.nic.dropped;
  system.queue.run(20 * kMillisecond);
  EXPECT_EQ(system.nic.wrong + system.nic.failed, 0U);
  const double lost =
      100.0 * static_cast<double>(system.nic.dropped - dropped) / static_cast<double>(system.nic.arrived - arrived);
  testing::Test::RecordProperty("loss_percent", std::to_string(lost));
  return lost;
}

TEST(IntelRoot, LineRateWithoutWriteback_ExpectThePublishedLoss) {
  // The time of a request was fitted to the first loss at 8.42 Gbit/s, so this is only a consistency check. That rate
  // is 10.26 % below line rate (304 of 324 bytes). The paper's two figures differ by this much.
  EXPECT_NEAR(loss(intel_xeon_4110(), false), 9.90, 0.4);
}

TEST(IntelRoot, LineRateWithWriteback_ExpectThePublishedLoss) {
  EXPECT_NEAR(loss(intel_xeon_4110(), true), 15.79, 0.3);  // rests on fitted settings: docs/design/nic-model.md
}

TEST(IntelRoot, TailsByEight_ExpectNoLoss) {
  EXPECT_EQ(loss(intel_xeon_4110(), false, 8), 0);  // predicted: 9.53 Gbit/s of 9.375 (research section 4)
}

TEST(IntelRoot, RequestsOfAPacket_ExpectFifteen) {
  System system({.root = intel_xeon_4110()}, false, {.gap = 400 * kNanosecond, .packets = 1000});
  system.queue.run();
  EXPECT_EQ(system.nic.transmitted, 1000U);
  // There are also 64 rx descriptors at the start, from one tail write.
  EXPECT_EQ(system.fabric.counters().peer_requests, 15'000U + 65);
}

TEST(OtherRoots, LineRate_ExpectNoLoss) {
  EXPECT_EQ(loss(amd_epyc_7402(), false), 0);
  EXPECT_EQ(loss(ideal_root(), true), 0);
}

// The paper states "first packet loss at 8.42 Gbit/s". Expect no loss below it, and some above it.
TEST(IntelRoot, AroundTheFirstLoss_ExpectNoneBelowAndSomeAbove) {
  for (const double rate : {8.3, 8.7}) {
    const auto gap = static_cast<Time>(304 * 8 / rate * 1000);  // with FCS, as line rate counts
    System system({.root = intel_xeon_4110()}, false, {.gap = gap, .packets = ~std::uint64_t{0}});
    system.queue.run(25 * kMillisecond);
    EXPECT_EQ(system.nic.dropped != 0, rate > 8.42) << rate;
  }
}

}  // namespace
}  // namespace wherry::sim::pcie::paper
